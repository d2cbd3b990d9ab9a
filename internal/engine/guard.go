package engine

import (
	"context"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/observe"
)

// Guard pins the row inside tx, a transaction of the caller's, if it still carries the lease.
func (u *Use) Guard(ctx context.Context, tx locktable.Guardable) error {
	if err := u.alive(); err != nil {
		return err
	}
	if tx == nil {
		return failure.Invalid("guard: there is no transaction")
	}
	return u.hold.guard(ctx, tx)
}

// guard pins the row of h inside a transaction.
func (h *hold) guard(ctx context.Context, tx locktable.Guardable) error {
	h.lease.mu.Lock()
	h.lease.guarded = true // the row must not be handed over while the transaction may be open
	h.lease.mu.Unlock()
	if err := h.alive(); err != nil {
		return err
	}
	h.locks.renewers.renewOverdue(ctx, h)
	limited, cancel := context.WithDeadline(ctx, h.lease.deadline())
	defer cancel()
	got, err := h.locks.table.Guards.Guard(limited, tx, h.claim())
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
