// Package gooselock is a locker for goose (github.com/pressly/goose/v3): of several instances that
// start at once, one migrates the database and the others wait.
//
//	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithLocker(gooselock.New(registry, "goose")))
//
// The package does not import goose: a [Locker] has the methods of goose's interfaces.
package gooselock

import (
	"context"
	"database/sql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/internal/named"
)

// A Locker is goose's lock.Locker and lock.SessionLocker, over one lock of a registry. All methods
// are safe for concurrent use.
//
//   - The lock table must exist before goose runs: run `sqllock migrate up`, or migrations.Up.
//   - goose takes a connection of its pool before it locks. If the registry uses the same pool, that
//     pool needs two connections for each provider that runs. With one connection the registry waits
//     for goose, and goose for the registry: Lock returns [sqllock.ErrDatabase] after some seconds,
//     or waits as long as ctx lasts if the registry has WaitThroughOutages.
//   - The lease is renewed automatically, also with the registry's NoRenew. goose does not learn
//     that it is lost, and goes on migrating. The error comes with the result of goose's run:
//     [sqllock.ErrLockLost]. A MaxHold of the registry ends the lease of a migration that takes longer.
type Locker struct {
	locks *named.Locks
	key   string
}

// New returns a locker that locks key. It sends nothing to the database. A bad key shows when goose
// locks.
func New(registry *sqllock.Registry, key string) *Locker {
	return &Locker{locks: named.New(registry, ""), key: key}
}

// Lock acquires the lock and waits as long as ctx lasts. It uses the registry's pool and not db. The
// errors are those of [sqllock.Registry.Lock].
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error { return l.locks.Lock(ctx, l.key) }

// Unlock releases the lock, also when ctx has ended. The errors are those of
// [sqllock.Lease.Unlock].
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error { return l.locks.Unlock(ctx, l.key) }

// SessionLock is Lock for goose.WithSessionLocker, which older versions of goose have alone. The
// lock does not depend on the session.
func (l *Locker) SessionLock(ctx context.Context, _ *sql.Conn) error {
	return l.locks.Lock(ctx, l.key)
}

// SessionUnlock is Unlock for goose.WithSessionLocker.
func (l *Locker) SessionUnlock(ctx context.Context, _ *sql.Conn) error {
	return l.locks.Unlock(ctx, l.key)
}
