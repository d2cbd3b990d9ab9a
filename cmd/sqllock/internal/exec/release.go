package exec

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/runs"
)

// releaseAtOnce releases the lock at once, whatever its minimum hold, because the command did
// not run.
func (x *execution) releaseAtOnce(h *holding) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.lease.Context()), x.ttl)
	defer cancel()
	_, err := answered(ctx, answerTimeout, func() (struct{}, error) {
		return struct{}{}, errors.Join(x.deleteKept(ctx, h), h.registry.Close(ctx))
	})
	x.printReleased(err)
}

// deleteKept deletes the rows that Close would keep for the minimum hold.
func (x *execution) deleteKept(ctx context.Context, h *holding) (all error) {
	if x.minHold == 0 || x.untilSuccess {
		return nil
	}
	for _, key := range x.keys() {
		_, err := h.registry.Repository().Delete(ctx, key, h.lease.Holder())
		all = errors.Join(all, err)
	}
	return all
}

// keep gives the lease of a command that has succeeded its minimum hold. Without it the release frees the lock at once.
func (x *execution) keep(h *holding) {
	ctx := h.lease.Context()
	_, err := answered(ctx, answerTimeout, func() (none struct{}, err error) {
		lock, err := h.registry.ObtainAll(x.keys()...)
		if err != nil {
			return none, err
		}
		again, err := lock.WithMinHold(x.minHold).TryLock(ctx) // enters the lease once more
		if err != nil {
			return none, err
		}
		return none, again.Unlock(ctx)
	})
	if err != nil && ctx.Err() == nil { // else the release says that the lock is lost
		x.printf("the lock %q has no minimum hold, and the command may run again at once: %s", x.name(), exit.Text(err))
	}
}

// record writes how the command has ended, while no other can: see [runs.Record]. Of permits and readers several end at once.
func (x *execution) record(h *holding, began time.Time, code int) {
	if x.recorded && x.isPlain() {
		runs.Record(h.lease.Context(), h.registry, x.key, runs.Last{Took: time.Since(began), Failed: code != 0, Code: &code})
	}
}

// release releases the lease. It returns an error if the lock was lost before. After any other
// error the row expires by itself; the work done under the lock stays valid.
func (x *execution) release(lease *sqllock.Lease) (lost error) {
	ctx := lease.Context() // Unlock also works when it has ended
	_, err := answered(ctx, answerTimeout, func() (struct{}, error) { return struct{}{}, lease.Unlock(ctx) })
	if errors.Is(err, sqllock.ErrLockLost) {
		return err
	}
	x.printReleased(err)
	return nil
}

func (x *execution) printReleased(err error) {
	if err != nil {
		x.printf("the lock %q was not released: %s; it becomes free when its lease ends", x.name(), exit.Text(err))
		return
	}
	x.verbosef("released %s", x.description())
}

// answerTimeout is how long a call to the database may take after its context has ended,
// to notice that and to clean up.
const answerTimeout = 2 * time.Second

// answered returns the results of fn. If fn runs for longer than the given time after
// ctx has ended, it returns an ErrDatabase, and fn goes on in the background.
func answered[T any](ctx context.Context, afterwards time.Duration, fn func() (T, error)) (T, error) {
	value, err := bounded.Do(ctx, afterwards, fn, nil)
	if errors.Is(err, bounded.ErrNoAnswer) {
		err = failure.As(sqllock.ErrDatabase, "", err)
	}
	return value, err
}
