// Package pgxlock opens locks in PostgreSQL over pgx, from a DSN to a registry in one call:
//
//	registry, err := pgxlock.Open(ctx, os.Getenv("DATABASE_URL"), nil)
//	…
//	defer registry.Close(context.WithoutCancel(ctx)) // releases the locks, also if ctx has ended
//	lease, err := registry.Lock(ctx, "orders/42")
//
// The registry has a pool of its own, of five connections, and more with Wake or Fair, with the session settings
// that locks need: see docs/pool.md. To use a pool of the application's instead, call [sqllock.NewRepository].
package pgxlock

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/notify"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/pgxdriver"
)

// Options are the settings of [Open] and [OpenPool]. A zero field means its default.
type Options struct {
	// Repository has the settings of the lock table, without Acquirers, Turns and
	// MultiStatements, which Open chooses.
	Repository sqllock.RepositoryOptions
	// Registry has the settings of leases and of waiting, without a Waker if Wake is set.
	Registry sqllock.RegistryOptions
	// Wake, if true, makes releases wake waiters, in this process and in others that set it:
	// see package notify. It needs one more connection, directly to the server: behind any
	// pooler Open returns an error.
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
// dbname=…. opts may be nil.
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
	return session.Open(ctx, dsn, pgxdriver.Parse, opts.session(func(ctx context.Context, dsn string) (session.Listener, error) {
		return notify.Listen(ctx, dsn, nil)
	}))
}

// OpenPool is [Open] with the configuration of a pgxpool in place of a DSN, for what a DSN cannot say: passwords that do not last, as
// AWS IAM's, secrets of Vault, TLS, a dialer, a Tracer.
//
//	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
//	…
//	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) (err error) {
//		c.Password, err = token(ctx)
//		return err
//	}
//	registry, err := pgxlock.OpenPool(ctx, config, nil)
//
// The pool is Open's own, with Open's session settings: of config it has ConnConfig, BeforeConnect and AfterConnect, and no
// limits. config is copied. OpenPool returns [sqllock.ErrInvalid] if PrepareConn, BeforeAcquire or AfterRelease is set, which
// only a pgxpool.Pool calls, and if no function of pgx has made the configuration. With Wake, the connection that listens has
// ConnConfig without its Tracer, and BeforeConnect. Its other errors are those of Open; what BeforeConnect returns is part of
// their text.
func OpenPool(ctx context.Context, config *pgxpool.Config, opts *Options) (*sqllock.Registry, error) {
	if opts == nil {
		opts = &Options{}
	}
	target, err := pgxdriver.Configured(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sqllock.ErrInvalid, err)
	}
	config = config.Copy()
	return session.OpenTarget(ctx, target, opts.session(func(ctx context.Context, _ string) (session.Listener, error) {
		return notify.ListenConfig(ctx, pgxdriver.ToListen(config), &notify.Options{BeforeConnect: beforeConnect(config)})
	}))
}

// beforeConnect returns BeforeConnect of config for a connection that is not of pgx, or nil.
func beforeConnect(config *pgxpool.Config) func(context.Context, *pgconn.Config) error {
	if config.BeforeConnect == nil {
		return nil
	}
	return func(ctx context.Context, c *pgconn.Config) error {
		whole := config.ConnConfig.Copy()
		whole.Config = *c
		err := config.BeforeConnect(ctx, whole)
		*c = whole.Config
		return err
	}
}

// session returns the options for package session.
func (o *Options) session(listen func(context.Context, string) (session.Listener, error)) session.Options {
	all := session.Options{Repository: o.Repository, Registry: o.Registry, Migrate: o.Migrate}
	if o.Wake {
		all.Listen = listen
	}
	return all
}
