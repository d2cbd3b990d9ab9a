//go:build linux

package reliability

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
)

// A writer holds a lock and writes to the register repeatedly, until the lock is lost.
func guardedWriter(ctx context.Context, do task, told <-chan string) error {
	db, registry, err := do.open(ctx, 0, sqllock.RegistryOptions{AutoRenew: true})
	if err != nil {
		return err
	}
	lease, err := registry.Lock(ctx, do.Key)
	if err != nil {
		return err
	}
	w := &writer{do: do, lease: lease, db: db, told: told}
	fmt.Println("token", lease.Token())
	return w.work(ctx)
}

type writer struct {
	do    task
	lease *sqllock.Lease
	db    *sqlx.DB
	told  <-chan string

	written int
	// alive is the start of the last check that found the lease valid.
	alive time.Time
}

func (w *writer) work(ctx context.Context) error {
	for n := 0; ; n++ {
		asked := time.Now()
		if w.lease.Context().Err() != nil {
			return w.ended(ctx, "asked")
		}
		w.alive = asked
		pause(ctx, 5*time.Millisecond) // the work under the lock
		if !w.do.Guarded {
			w.bePaused()
		}
		switch err := w.write(ctx); {
		case errors.Is(err, sqllock.ErrLockLost):
			return w.ended(ctx, "refused")
		case err != nil && w.lease.Context().Err() != nil:
			return w.ended(ctx, "failed")
		case err != nil:
			return err
		}
		if w.written++; w.written == 1 {
			fmt.Println("working")
		}
	}
}

// ended prints the result. The context of the lease must have ended.
func (w *writer) ended(ctx context.Context, how string) error {
	cause := context.Cause(w.lease.Context()) //nolint:contextcheck // the cause of that context is wanted
	unlock := w.lease.Unlock(ctx)
	fmt.Println("ended", how, w.written, w.alive.UnixNano(),
		errors.Is(cause, sqllock.ErrLockLost), errors.Is(unlock, sqllock.ErrLockLost))
	return nil
}

// write writes the token to the register, in a transaction.
func (w *writer) write(ctx context.Context) error {
	tx, err := w.db.Beginx()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if w.do.Guarded {
		if err := w.lease.Guard(ctx, tx); err != nil {
			return err
		}
	}
	if err := register(ctx, tx, w.do.Key, w.lease.Token()); err != nil {
		return err
	}
	if w.do.Transaction {
		w.bePaused()
	}
	return tx.Commit()
}

// bePaused lets the test stop this process here, after it has written something.
func (w *writer) bePaused() {
	if w.written == 0 {
		return
	}
	fmt.Println("here")
	<-w.told
}
