package engine

import (
	"context"
	"reflect"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/observe"
)

// Guard pins the row inside tx, a transaction of the caller's, if it still carries the lease.
func (u *Use) Guard(ctx context.Context, tx locktable.Tx) error {
	return u.guard(ctx, isNil(tx), func(ctx context.Context) (locktable.GuardResult, error) {
		return u.hold.config.table.Guard(ctx, tx, u.hold.claim())
	})
}

// GuardFunc is Guard for a transaction that is not one of database/sql. queryRow may be nil.
func (u *Use) GuardFunc(ctx context.Context, queryRow locktable.QueryRow) error {
	return u.guard(ctx, queryRow == nil, func(ctx context.Context) (locktable.GuardResult, error) {
		return u.hold.config.table.GuardFunc(ctx, queryRow, u.hold.claim())
	})
}

// isNil reports whether tx is nil, or a nil pointer.
func isNil(tx locktable.Tx) bool {
	v := reflect.ValueOf(tx)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// guard has send pin the row inside a transaction, unless that is missing.
func (u *Use) guard(ctx context.Context, missing bool, send func(context.Context) (locktable.GuardResult, error)) error {
	if err := u.alive(); err != nil {
		return err
	}
	if missing {
		return failure.Invalid("guard: there is no transaction")
	}
	return u.hold.guard(ctx, send)
}

// guard has send pin the row of h inside a transaction.
func (h *hold) guard(ctx context.Context, send func(context.Context) (locktable.GuardResult, error)) error {
	h.mu.Lock()
	h.guarded = true // the row must not be handed over while the transaction may be open
	h.mu.Unlock()
	if err := h.alive(); err != nil {
		return err
	}
	h.config.renewOverdue(ctx, h)
	limited, cancel := context.WithDeadline(ctx, h.deadline())
	defer cancel()
	got, err := send(limited)
	// The row was there then, and the lease has not ended since: so it had not expired
	// either, whatever the statement had to wait for.
	if lost := h.alive(); lost != nil {
		return lost
	}
	switch {
	case err != nil:
		return failure.Kinded(ctx, failure.Of(err, h.key))
	case got == locktable.StaleSnapshot:
		return failure.Invalid("guard %q: the transaction does not see the lease: begin it after Lock, in the database of the lock", h.key)
	case got == locktable.NotHeld:
		h.finish(observe.EndTaken, nil)
		return h.lost()
	default:
		return nil
	}
}
