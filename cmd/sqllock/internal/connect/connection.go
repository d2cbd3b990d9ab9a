package connect

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// A Connection is an open database.
type Connection struct {
	DB      *sqlx.DB
	Dialect dialect.Dialect
	Target  session.Target
	Name    string // the DSN without passwords, for messages
	Default bool   // it is the default SQLite file

	pools *session.Pools
}

// Close closes the database. It returns no error: whatever the command has done is committed, and a connection that breaks
// when it takes its leave makes that no failure.
func (c *Connection) Close() { _ = c.pools.Close() }

// Pooler says why the settings of a session are not relied on, or is nil.
func (c *Connection) Pooler() error { return c.pools.Pooler }

// SQL returns the pool as package migrations needs it.
func (c *Connection) SQL() *sql.DB { return c.DB.DB }

// Presence says what to do about an SQLite file that does not exist. The default file
// is always created.
type Presence bool

// The values of Presence.
const (
	MustExist Presence = false // return an error
	MayCreate Presence = true  // create it
)

// startTimeout limits how long a command waits for a database that is busy.
const startTimeout = 10 * time.Second

// Repository returns the lock table that the flags choose. If the server refuses SERIALIZABLE,
// locks are acquired in READ COMMITTED transactions.
func (f *Flags) Repository(ctx context.Context, c *Connection, opts sqllock.RepositoryOptions) (*sqllock.Repository, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ctx = c.pools.Watching(ctx)
	opts.MultiStatements = c.pools.MultiStatements
	opts.Region, opts.Prefix, opts.Keys = f.Region, f.Prefix, f.Keys()
	opts.DisableFencing = opts.DisableFencing || f.NoFencing
	opts.Unverified = f.Unverified
	r, err := sqllock.NewRepository(ctx, c.DB.DB, c.Dialect, &opts)
	if dbcall.Is(err, dbcall.WrongIsolation) {
		opts.Isolation = sqllock.ReadCommitted
		r, err = sqllock.NewRepository(ctx, c.DB.DB, c.Dialect, &opts)
	}
	return r, f.WithTableHint(c, err)
}

// Faults returns how the tables that the flags choose are not what locks need.
func (f *Flags) Faults(ctx context.Context, c *Connection, opts sqllock.RepositoryOptions) ([]probe.Fault, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	names, err := sqltext.NamesFor(f.Prefix)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	if opts.DisableFencing || f.NoFencing {
		names.Fence = ""
	}
	faults, err := probe.Faults(ctx, c.SQL(), sqltext.Of(c.Dialect), names, f.PlainKeys, f.Unverified)
	return faults, f.WithTableHint(c, failure.Of(err, ""))
}

// CheckServer returns an error if tables must not be created: the server is not one that sqllock supports.
func (f *Flags) CheckServer(ctx context.Context, c *Connection) error {
	return failure.Of(probe.CheckServer(ctx, c.SQL(), sqltext.Of(c.Dialect), f.Prefix, f.Unverified), "")
}

// WithTableHint adds the hint for a missing table.
func (f *Flags) WithTableHint(c *Connection, err error) error {
	if !c.MissesTable(err) {
		return err
	}
	var table *dbcall.Error
	if errors.As(err, &table) {
		// Leave out the library's own advice, which the hint repeats.
		err = failure.As(sqllock.ErrSchema, "", table)
	}
	up := dbcall.MigrateUp(f.Prefix)
	switch {
	case dbcall.Is(err, dbcall.NoFence):
		up += " --layout " + dialect.Spring6.String() + ", or --no-fencing"
	case dbcall.Is(err, dbcall.NoFenceOfFive):
		up += ", or --no-fencing"
	}
	return exit.WithHint(err, "%s", up)
}

// WithRepository calls fn with the lock table that the flags choose. fn may not acquire
// locks: the table need not have fencing tokens, as Spring's own has not. In a table without
// EXPIRED_AFTER a row lasts for ttl.
func (f *Flags) WithRepository(ctx context.Context, ttl time.Duration, fn func(*sqllock.Repository) error) error {
	c, err := f.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := f.Repository(ctx, c, sqllock.RepositoryOptions{TTL: ttl, DisableFencing: true})
	if err != nil {
		return err
	}
	return f.WithTableHint(c, fn(r))
}
