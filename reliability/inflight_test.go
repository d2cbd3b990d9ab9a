//go:build linux

package reliability

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
)

// TestCallsIntoABlackHole makes calls to the database just after the network has started to
// drop all data, while the lease lasts. Each call must return at the end of its context or
// of the lease, although lib/pq does not check contexts while it waits for a response.
func TestCallsIntoABlackHole(t *testing.T) {
	inParallel(t)
	each(t, servers, func(t *testing.T, _ int, c cell) {
		b := c.newBase(t)
		for name, call := range callsInto {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b.callsInto(t, call)
			})
		}
	})
}

// withMinHold is the call that gets a lease with a minimum hold.
const withMinHold = "UnlockWithAMinimumHold"

// callsInto are the calls. Each may take until the lease's deadline.
var callsInto = map[string]func(context.Context, *sqllock.Registry, *sqllock.Lease, *sqlx.Tx) error{
	"Renew": func(ctx context.Context, _ *sqllock.Registry, lease *sqllock.Lease, _ *sqlx.Tx) error {
		return lease.Renew(ctx)
	},
	"Unlock": func(ctx context.Context, _ *sqllock.Registry, lease *sqllock.Lease, _ *sqlx.Tx) error {
		return lease.Unlock(ctx)
	},
	withMinHold: func(ctx context.Context, _ *sqllock.Registry, lease *sqllock.Lease, _ *sqlx.Tx) error {
		return lease.Unlock(ctx)
	},
	"Guard": func(ctx context.Context, _ *sqllock.Registry, lease *sqllock.Lease, tx *sqlx.Tx) error {
		return lease.Guard(ctx, tx)
	},
	"TryLock": func(ctx context.Context, r *sqllock.Registry, lease *sqllock.Lease, _ *sqlx.Tx) error {
		ctx, cancel := context.WithDeadline(ctx, lease.Deadline())
		defer cancel()
		lock, err := r.Obtain("another")
		if err != nil {
			return err
		}
		_, err = lock.TryLock(ctx)
		return err
	},
	"Close": func(ctx context.Context, r *sqllock.Registry, lease *sqllock.Lease, _ *sqlx.Tx) error {
		ctx, cancel := context.WithDeadline(ctx, lease.Deadline())
		defer cancel()
		return r.Close(ctx)
	},
	"CloseAfterUnlock": func(ctx context.Context, r *sqllock.Registry, lease *sqllock.Lease, _ *sqlx.Tx) error {
		_ = lease.Unlock(ctx) // it leaves a row for Close
		ctx, cancel := context.WithTimeout(ctx, blackHoleTTL)
		defer cancel()
		return r.Close(ctx)
	},
}

func (b *base) callsInto(t *testing.T, call func(context.Context, *sqllock.Registry, *sqllock.Lease, *sqlx.Tx) error) {
	t.Helper()
	n := newNetwork(t, b)
	db := open(t, b.driver, n.dsn, 3)
	r := b.registry(t, db, sqllock.RegistryOptions{TTL: blackHoleTTL})
	lock := obtain(t, r, t.Name())
	if strings.HasSuffix(t.Name(), withMinHold) {
		lock = lock.WithMinHold(time.Minute)
	}
	lease := locked(t, lock)
	tx, err := db.Beginx()
	must(t, err)
	n.fallSilent()
	answer := make(chan error, 1)
	go func() { answer <- call(t.Context(), r, lease, tx) }()
	limit := time.NewTimer(promptly)
	defer limit.Stop()
	select {
	case err := <-answer:
		if err == nil {
			t.Error("no error, although the server cannot be reached")
		}
		t.Logf("%v after the deadline: %v", time.Since(lease.Deadline()).Round(time.Millisecond), err)
	case <-limit.C:
		t.Errorf("the call has not returned %v after the deadline", time.Since(lease.Deadline()).Round(time.Millisecond))
	}
	n.breakDown() // otherwise the application's own rollback would hang, too
	_ = tx.Rollback()
}
