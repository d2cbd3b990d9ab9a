package simulation

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
)

// orphanFor is how long a statement may be under way whose caller has left, until its row is
// deleted: a batch is given up after 5 s, and the deletion has a second.
const orphanFor = 7 * time.Second

// batchTimeout is after how long a batch is given up, which may leave a statement under way.
const batchTimeout = 5 * time.Second

// attempts are the calls of a process that lock.
type attempts struct {
	mu       sync.Mutex
	underWay map[string]int       // by key
	orphans  map[string]time.Time // by key, until when a statement may be under way without a caller
}

// An attempt is a call that locks, until it has the lock or fails.
type attempt struct {
	*call

	keys  []string
	waits *wait // nil if it does not wait
	over  sync.Once
	seats bool // it acquires rows of a semaphore or of a read-write lock
}

// attempt notes that a call begins that locks keys, and waits for them if waits is true.
func (p *process) attempt(ctx context.Context, name string, keys []string, waits bool) *attempt {
	a := &attempt{call: p.begin(ctx, name), keys: keys}
	if waits {
		a.waits = p.world.witness.waits(p, keys, 0)
	}
	p.attempts.mu.Lock()
	defer p.attempts.mu.Unlock()
	if p.attempts.underWay == nil {
		p.attempts.underWay, p.attempts.orphans = make(map[string]int), make(map[string]time.Time)
	}
	for _, key := range keys {
		p.attempts.underWay[key]++
	}
	return a
}

// end notes that the call has the lock, or has failed with err.
func (a *attempt) end(err error) {
	a.over.Do(func() {
		all := &a.process.attempts
		if a.waits != nil {
			a.process.world.witness.ends(a.waits)
		}
		all.mu.Lock()
		defer all.mu.Unlock()
		goesOn := a.process.plan.Registry.WaitThroughOutages // after an attempt that has failed
		hasWaited := a.waits != nil && (errors.Is(err, sqllock.ErrNotAcquired) || goesOn)
		left := hasWaited || a.ctx.Err() != nil || time.Since(a.began) >= batchTimeout
		for _, key := range a.keys {
			all.underWay[key]--
			if err != nil && left {
				all.orphans[key] = time.Now().Add(orphanFor)
			}
		}
	})
}

// mayHaveRow reports whether a call of the process may have a row of one of keys, or may have left
// one, that no claim shows.
func (a *attempts) mayHaveRow(keys []string, since time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(keys, func(key string) bool { return a.underWay[key] > 0 || a.orphans[key].After(since) })
}

// checkOwnRow checks, after an attempt has ended with err, that the lock was not refused because of
// a row of this process that has no holder: the library deletes such a row before it tries.
func (a *attempt) checkOwnRow(err error) {
	if a.seats { // they count as held until they expire
		return
	}
	var held *sqllock.HeldError
	p := a.process
	w := p.world
	if !errors.As(err, &held) || clientOf(held.Holder) != p.id || held.Left <= w.witness.forgotten() || !w.plan.isDefinite() {
		return
	}
	if p.isDead() || p.isClosed() || p.attempts.mayHaveRow(a.keys, a.began) || w.witness.explains(held.Holder, a.began) {
		return
	}
	w.violated("own row", "%s: %s: its own row is in the way, which has no holder: %v", p.id, a.name, err)
}

// explains reports whether a row of a holder may have been there at some time since then: a
// caller has it, or it is left for a minimum hold, or its lease was lost.
func (w *witness) explains(holder string, since time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.using[holder] > 0 || !w.unused[holder].Before(since) || w.kept[holder]
}
