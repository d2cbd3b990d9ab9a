// Package pqlock opens locks in PostgreSQL over lib/pq, from a DSN to a registry in one call:
//
//	registry, err := pqlock.Open(ctx, os.Getenv("DATABASE_URL"), nil)
//	…
//	defer registry.Close(context.WithoutCancel(ctx)) // releases the locks, also if ctx has ended
//	lease, err := registry.Lock(ctx, "orders/42")
//
// The registry has a pool of its own, of five connections, and more with Wake or Fair, with the session settings
// that locks need: see docs/pool.md. To use a pool of the application's instead, call [sqllock.NewRepository].
package pqlock

import (
	"context"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/notify"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/pqdriver"
)

// Options are the settings of [Open]. A zero field means its default.
type Options struct {
	// Repository has the settings of the lock table, without Acquirers, Turns and
	// MultiStatements, which Open chooses.
	Repository sqllock.RepositoryOptions
	// Registry has the settings of leases and of waiting, without a Waker if Wake is set.
	Registry sqllock.RegistryOptions
	// Wake, if true, makes releases wake waiters, in this process and in others that set it:
	// see package notify. It needs one more connection, directly to the server: behind any
	// pooler Open returns an error, and for a DSN with hostaddr or sslinline, which pgx does not know.
	Wake bool
	// Migrate, if it is migrations.Up, creates the tables if they are missing, and brings them up to
	// date. By default Open changes no table, and the application does not link golang-migrate. The
	// user of the DSN must be allowed to change the schema for it. A table without EXPIRED_AFTER gets
	// that column only if Layout of Repository is dialect.Spring7: with it, a Spring before 7 cannot
	// lock.
	Migrate dialect.Migrate
}

// Open connects to the PostgreSQL that dsn names, and returns a registry. dsn is a URL,
// postgres://user:password@host:5432/database?name=value, or host=… user=… password=…
// dbname=…. The ports of several hosts can be given in the second form only. opts may be nil.
//
// Open returns
//   - [sqllock.ErrInvalid] for a bad DSN or option, before it connects, and for a server that sqllock
//     does not support, such as CockroachDB: see [sqllock.RepositoryOptions].Unverified,
//     and for one that is a MySQL,
//   - [sqllock.ErrSchema] if there is no usable lock table: see Migrate,
//   - [sqllock.ErrReadOnly], an ErrDatabase, if the server is a standby, or the user's sessions are
//     read-only (default_transaction_read_only),
//   - [sqllock.ErrDatabase] for any other error, also if ctx ends, or if the server does not
//     answer within 10 s.
//
// No error contains the password. Close of the registry closes what Open has opened.
func Open(ctx context.Context, dsn string, opts *Options) (*sqllock.Registry, error) {
	if opts == nil {
		opts = &Options{}
	}
	o := session.Options{Repository: opts.Repository, Registry: opts.Registry, Migrate: opts.Migrate}
	parse := pqdriver.Parse
	if opts.Wake {
		parse = pqdriver.ParseToListen
		o.Listen = func(ctx context.Context, dsn string) (session.Listener, error) { return notify.Listen(ctx, dsn, nil) }
	}
	return session.Open(ctx, dsn, parse, o)
}
