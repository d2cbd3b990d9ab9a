package load

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// tenKeys measures acquiring and releasing ten keys at once, each worker its own ten. Contenders
// that have no joint locks acquire one after the other.
func tenKeys(workers int) Load {
	return Load{
		Name: fmt.Sprintf("ten keys %d", workers),
		Run: func(ctx context.Context, a *Arena, c contender.Contender) (record.Round, error) {
			keys := make([][]string, workers)
			for worker := range keys {
				for i := range 10 {
					keys[worker] = append(keys[worker], fmt.Sprintf("ten-%d-%d", worker, i))
				}
			}
			var round record.Round
			err := during(ctx, c, a.Place(c), func(session contender.Session) (err error) {
				round, err = a.measure(ctx, session, workers, func(ctx context.Context, worker int) error {
					unlock, err := lockEach(ctx, session, keys[worker])
					return errors.Join(err, unlock(ctx))
				})
				return err
			})
			return round, err
		},
	}
}

// lockEach acquires all keys. The function that it returns releases those that were acquired.
func lockEach(ctx context.Context, session contender.Session, keys []string) (contender.Unlock, error) {
	if joint, ok := session.(contender.JointSession); ok {
		unlock, err := joint.LockAll(ctx, keys)
		if err != nil {
			return func(context.Context) error { return nil }, err
		}
		return unlock, nil
	}
	var unlocks []contender.Unlock
	all := func(ctx context.Context) error {
		var errs []error
		for _, unlock := range unlocks {
			errs = append(errs, unlock(ctx))
		}
		return errors.Join(errs...)
	}
	for _, key := range keys {
		unlock, err := session.Lock(ctx, key)
		if err != nil {
			return all, err
		}
		unlocks = append(unlocks, unlock)
	}
	return all, nil
}
