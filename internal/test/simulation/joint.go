package simulation

import (
	"context"
	"slices"
)

// mostTogether is how many keys a caller locks together at most.
const mostTogether = 4

// actJointly does one thing that a caller may do with several keys together.
func (k *worker) actJointly(ctx context.Context) {
	keys := k.someOf(k.world.keys, 2)
	switch n := k.random.intN(100); {
	case n < 55:
		k.lock(ctx, keys...)
	case n < 70:
		k.tryLock(ctx, keys...)
	case n < 85:
		k.executeLocked(ctx, keys...)
	default:
		k.executeLockedTx(ctx, keys...)
	}
}

// someOf returns some of keys, in random order: at least as many, if there are.
func (k *worker) someOf(keys []string, least int) []string {
	if len(keys) == 1 {
		return keys
	}
	some := slices.Clone(keys)
	for i := range some {
		j := i + k.random.intN(len(some)-i)
		some[i], some[j] = some[j], some[i]
	}
	most := min(mostTogether, len(some))
	return some[:least+k.random.intN(most-least+1)]
}
