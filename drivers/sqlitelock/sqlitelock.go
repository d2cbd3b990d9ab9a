// Package sqlitelock opens locks in an SQLite file over modernc.org/sqlite, from a path to a
// registry in one call:
//
//	registry, err := sqlitelock.Open(ctx, "locks.db", nil)
//	…
//	defer registry.Close(context.WithoutCancel(ctx)) // releases the locks, also if ctx has ended
//	lease, err := registry.Lock(ctx, "orders/42")
//
// The registry has a pool of its own, of five connections, with the settings that locks
// need: see docs/pool.md. To use a pool of the application's instead, call
// [sqllock.NewRepository].
//
// On Linux a waiter finds a release in another process within milliseconds: it polls when the file is written to. The system
// reports that by inotify, and no descriptor of the file is opened for it. While callers wait, and for a second after, a
// registry uses one inotify instance; a user has 128 by default (fs.inotify.max_user_instances). Without one, and on other
// systems, waiters poll as docs/waiting.md says. In a bubble of testing/synctest that keeps the bubble's time from going on: use
// package sqllocktest there.
package sqlitelock

import (
	"context"
	"database/sql"
	"log/slog"
	"slices"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
	"github.com/sqllock/sqllock/migrations"
)

// Options are the settings of [Open]. A zero field means its default.
type Options struct {
	// Repository has the settings of the lock table, without Acquirers, Turns and
	// MultiStatements, which Open chooses.
	Repository sqllock.RepositoryOptions
	// Registry has the settings of leases and of waiting.
	Registry sqllock.RegistryOptions
}

// Open opens the SQLite file that dsn names, and returns a registry. dsn is a path, sqlite:PATH, or
// one of SQLite's URIs, file:PATH?name=value. A file that does not exist is created, but not its
// directory, and the tables in it are created or brought up to date. Several processes may open one
// file. A database that other processes cannot share is refused: one in memory, a temporary one,
// and a file without locks (nolock, vfs=unix-none). SQLite ignores parameters and pragmas that it
// does not know. If the file is removed or replaced later, leases are lost at their next renewal,
// and acquisitions return [sqllock.ErrSchema]. opts may be nil.
//
// No other SQLite library may open the file in the same process, such as mattn/go-sqlite3 beside this one: when it
// closes the file, the operating system drops the locks of this one, and the file is damaged. Open logs a warning to
// slog.Default() if such a library is linked, by its driver "sqlite3". It cannot see which files that opens, or will open: dsn
// names one file alone, and descriptors of it may be those of another registry.
//
// Open returns
//   - [sqllock.ErrInvalid] for a bad DSN or option, before the file is opened,
//   - [sqllock.ErrSchema] if there is no usable lock table,
//   - [sqllock.ErrDatabase] for any other error, also if ctx ends, or if another process keeps
//     the file busy for more than 10 s.
//
// Close of the registry closes what Open has opened.
func Open(ctx context.Context, dsn string, opts *Options) (*sqllock.Registry, error) {
	if opts == nil {
		opts = &Options{}
	}
	if slices.Contains(sql.Drivers(), otherDriver) {
		slog.WarnContext(ctx, "sqllock: another SQLite library is linked: if both open one file in a process, the file is damaged", "driver", otherDriver)
	}
	return session.Open(ctx, dsn, sqlitedriver.Parse, session.Options{
		Repository: opts.Repository, Registry: opts.Registry, Migrate: migrations.Up,
	})
}

// otherDriver is how SQLite libraries other than modernc.org/sqlite register themselves.
const otherDriver = "sqlite3"
