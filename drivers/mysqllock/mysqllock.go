// Package mysqllock opens locks in MySQL or MariaDB over go-sql-driver, from a DSN to a registry
// in one call:
//
//	registry, err := mysqllock.Open(ctx, os.Getenv("DATABASE_URL"), nil)
//	…
//	defer registry.Close(context.WithoutCancel(ctx)) // releases the locks, also if ctx has ended
//	lease, err := registry.Lock(ctx, "orders/42")
//
// The registry has a pool of its own, of five connections, and more with Wake or Fair, with the session settings
// that locks need: see docs/pool.md. To use a pool of the application's instead, call
// [sqllock.NewRepository].
package mysqllock

import (
	"context"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/mysqldriver"
)

// Options are the settings of [Open] and [OpenConfig]. A zero field means its default.
type Options struct {
	// Repository has the settings of the lock table, without Acquirers, Turns and
	// MultiStatements, which Open chooses.
	Repository sqllock.RepositoryOptions
	// Registry has the settings of leases and of waiting.
	Registry sqllock.RegistryOptions
	// Wake, if true, makes a release wake one waiting process that sets it, too: see docs/waiting.md, also for the
	// servers on which it has no effect. Observer.Fallback is called where it has none. It needs one more connection
	// while the process waits.
	Wake bool
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
//     and for one that is a PostgreSQL,
//   - [sqllock.ErrSchema] if there is no usable lock table: see Migrate,
//   - [sqllock.ErrDatabase] for any other error, also if ctx ends, or if the server does not
//     answer within 10 s.
//
// No error contains the password. Close of the registry closes what Open has opened.
func Open(ctx context.Context, dsn string, opts *Options) (*sqllock.Registry, error) {
	if opts == nil {
		opts = &Options{}
	}
	return session.Open(ctx, dsn, mysqldriver.Parse, opts.session())
}

// OpenConfig is [Open] with a configuration of the driver in place of a DSN, for what a DSN cannot say: passwords that do not
// last, as AWS IAM's, secrets of Vault, TLS, a dialer.
//
//	config, err := mysql.ParseDSN(os.Getenv("DATABASE_DSN"))
//	…
//	err = config.Apply(mysql.BeforeConnect(func(ctx context.Context, c *mysql.Config) (err error) {
//		c.Passwd, err = token(ctx)
//		return err
//	}))
//	…
//	registry, err := mysqllock.OpenConfig(ctx, config, nil)
//
// The pool is Open's own, with Open's session settings, which config may override as the parameters of a DSN may. config is
// copied. For TiDB there is Open alone. The errors are those of Open; what BeforeConnect returns is part of their text.
func OpenConfig(ctx context.Context, config *mysql.Config, opts *Options) (*sqllock.Registry, error) {
	if opts == nil {
		opts = &Options{}
	}
	target, err := mysqldriver.Configured(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sqllock.ErrInvalid, err)
	}
	return session.OpenTarget(ctx, target, opts.session())
}

// session returns the options for package session.
func (o *Options) session() session.Options {
	return session.Options{Repository: o.Repository, Registry: o.Registry, Migrate: o.Migrate, Wake: o.Wake}
}
