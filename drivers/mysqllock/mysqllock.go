// Package mysqllock opens locks in MySQL or MariaDB over go-sql-driver, from a DSN to a registry
// in one call:
//
//	registry, err := mysqllock.Open(ctx, os.Getenv("DATABASE_URL"), nil)
//	…
//	defer registry.Close(context.WithoutCancel(ctx)) // releases the locks, also if ctx has ended
//	lease, err := registry.Lock(ctx, "orders/42")
//
// The registry has a pool of its own, of four connections, with the session settings that
// locks need: see docs/pool.md. To use a pool of the application's instead, call
// [sqllock.NewRepository].
package mysqllock

import (
	"context"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/mysqldriver"
)

// Options are the settings of [Open]. A zero field means its default.
type Options struct {
	// Repository has the settings of the lock table, without Acquirers and MultiStatements,
	// which Open chooses.
	Repository sqllock.RepositoryOptions
	// Registry has the settings of leases and of waiting. Open sets AutoRenew, unless NoRenew is set.
	Registry sqllock.RegistryOptions
	// NoRenew, if true, lets a lease end after its time-to-live. By default it is renewed until it is
	// unlocked, or until MaxHold of Registry, if that is set. [sqllock.JdbcLock.WithAutoRenew] chooses
	// for one lock. NoRenew and AutoRenew of Registry exclude each other.
	NoRenew bool
	// Migrate, if it is migrations.Up, creates the tables if they are missing, and brings them up to
	// date. By default Open changes no table, and the application does not link golang-migrate. The
	// user of the DSN must be allowed to change the schema for it. A table without EXPIRED_AFTER gets
	// that column only if Layout of Repository is dialect.Spring7: with it, a Spring before 7 cannot
	// lock.
	Migrate dialect.Migrate
}

// Open connects to the MySQL or MariaDB that dsn names, and returns a registry. dsn is a URL,
// mysql://user:password@host:3306/database?name=value, or the driver's own form,
// user:password@tcp(host:3306)/database?name=value. tidb:// in place of mysql:// is for TiDB. opts may be nil.
//
// Open returns
//   - [sqllock.ErrInvalid] for a bad DSN or option, before it connects, for a parameter of
//     the DSN that changes the character set behind the driver's back, and for a server that sqllock
//     does not support, such as SingleStore: see [sqllock.RepositoryOptions].Unverified,
//   - [sqllock.ErrSchema] if there is no usable lock table: see Migrate,
//   - [sqllock.ErrDatabase] for any other error, also if ctx ends, or if the server does not
//     answer within 10 s.
//
// No error contains the password. Close of the registry closes what Open has opened.
func Open(ctx context.Context, dsn string, opts *Options) (*sqllock.Registry, error) {
	if opts == nil {
		opts = &Options{}
	}
	return session.Open(ctx, dsn, mysqldriver.Parse, session.Options{
		Repository: opts.Repository, Registry: opts.Registry, NoRenew: opts.NoRenew, Migrate: opts.Migrate,
	})
}
