package sqllock

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/locktable"
)

// A Pin is an open transaction that has the row of a lock locked: a guarded one, or one that a program or a person
// has left open. Until it ends the row cannot be renewed, released or acquired.
type Pin struct {
	// Session is the server's number of the session, with its user, program and address as far as they are known.
	Session string
	// Since is for how long the transaction has been open. It is negative if the server does not tell this user.
	Since time.Duration
}

// String returns what a person wants to know.
func (p Pin) String() string { return locktable.Pin(p).String() }

// Pin returns the transaction that has the row of key locked. ok is false if there is none, or the server does not
// tell: SQLite and TiDB know nothing of it, MySQL asks for rights (see docs/operations.md) and needs its
// performance_schema, and MariaDB knows it only while another transaction waits for the row, too. It is for what a
// person reads: it is slow, and a moment later all may be different.
func (r *Repository) Pin(ctx context.Context, key string) (pin Pin, ok bool) {
	lockKey, err := r.LockKey(key)
	if err != nil {
		return Pin{}, false
	}
	found, ok := r.table.Pins.Pin(ctx, lockKey)
	return Pin(found), ok
}
