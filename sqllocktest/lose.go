package sqllocktest

import (
	"cmp"
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
)

// taker is the client id of the process that has a lock after [Registry.Lose].
const taker = "taker"

// Lose takes the lock of key away from its holder, in any of the registries: its row gets
// another holder, whose client id is "taker" and which keeps it until one time-to-live of
// the registry's options after Lose has returned. A registry that waits for the lock may be
// faster, and has it then. Lose works while the database is broken for the registries, too.
//
// Lose returns when the holder has noticed: the context of its lease has ended with cause
// [sqllock.ErrLockLost]. That is at the next renewal, or, with NoRenew, at the deadline of the lease. In a bubble this takes no real time, but the bubble's clock moves on. Outside of
// one, use a short time-to-live.
//
// If no registry holds the lock, or the database fails, the test ends. So call Lose from the
// goroutine of the test, as t.Fatal.
func (r *Registry) Lose(key string) {
	r.tb.Helper()
	network := flaky.New(virtualsqlite.Driver{}, r.dsn) // it stays when r.network is broken
	db := pool(network)
	defer func() {
		if err := db.Close(); err != nil {
			r.tb.Errorf("sqllocktest: close the database: %v", err)
		}
	}()
	r.take(newRepository(r.tb, db, taker), key)
}

// take gives the row of key to another holder, and waits until the holder has noticed.
//
//nolint:contextcheck,nolintlint // callers need pass no context: the test's is the right one
func (r *Registry) take(by *sqllock.Repository, key string) {
	r.tb.Helper()
	ctx := context.WithoutCancel(r.tb.Context()) // Lose may be called in a cleanup
	row, ok, err := by.Peek(ctx, key)
	if err != nil {
		r.tb.Fatalf("sqllocktest: Lose: %v", err)
	}
	if !ok || !r.isHeld(row.Holder) {
		r.tb.Fatalf("sqllocktest: Lose: the lock of %q is not held", key)
	}
	if _, err := by.Delete(ctx, key, row.Holder); err != nil {
		r.tb.Fatalf("sqllocktest: Lose: %v", err)
	}
	// A registry that waits for the lock may be faster. The lease is lost all the same.
	taken := by.NewHolder()
	if _, err := by.Acquire(ctx, key, taken, r.ttl()); err != nil {
		r.tb.Fatalf("sqllocktest: Lose: %v", err)
	}
	for r.isHeld(row.Holder) {
		time.Sleep(max(r.ttl()/100, time.Millisecond))
		if _, err := by.Renew(ctx, key, taken, r.ttl()); err != nil {
			r.tb.Fatalf("sqllocktest: Lose: %v", err)
		}
	}
}

// isHeld reports whether a registry believes that it holds a row as holder.
func (r *Registry) isHeld(holder string) bool {
	for _, process := range r.all() {
		for _, held := range process.Held() {
			if held.Holder == holder {
				return true
			}
		}
	}
	return false
}

func (r *Registry) ttl() time.Duration { return cmp.Or(r.opts.TTL, sqllock.DefaultTTL) }
