package session

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/observe"
)

// connections is how many connections the pools of a registry have at most.
const connections = 4

// Options are what the public packages are given.
type Options struct {
	Repository sqllock.RepositoryOptions
	Registry   sqllock.RegistryOptions
	// NoRenew has leases end unless AutoRenew is chosen for the lock.
	NoRenew bool
	// Migrate, unless it is nil, creates the tables, or brings them up to date.
	Migrate dialect.Migrate
	// Listen, unless it is nil, connects what wakes waiters.
	Listen func(ctx context.Context, dsn string) (Listener, error)
}

// A Listener wakes waiters until it is closed.
type Listener interface {
	sqllock.Waker
	Close() error
}

// Open parses a DSN, and returns a registry over pools of its own, which Close of the registry closes. Its errors are
// those of [sqllock.NewRepository] and [sqllock.NewRegistry]; a bad DSN is an [sqllock.ErrInvalid]. They never
// contain a password.
func Open(ctx context.Context, dsn string, parse func(string) (Target, error), o Options) (*sqllock.Registry, error) {
	target, err := parse(dsn)
	if strings.ContainsAny(dsn, "\n\r\x00") {
		err = ErrLineBreak
	}
	if dsn == "" {
		err = errEmpty
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sqllock.ErrInvalid, err)
	}
	if err := target.check(ctx, o); err != nil {
		return nil, err
	}
	if o.Migrate != nil {
		if err := target.migrate(ctx, o); err != nil {
			return nil, err
		}
	}
	pools, err := target.Connect(ctx, Need{Connections: connections, Acquirers: o.Repository.Isolation == sqllock.Serializable, Impatient: true})
	if err != nil {
		return nil, target.explain(err)
	}
	if err := target.checkWritable(ctx, pools); err != nil {
		return nil, errors.Join(target.explain(err), pools.Close())
	}
	if pools.Pooler == nil {
		target.Dialect = target.Dialect.WithoutScans() // see postgresDefaults
	}
	opened := opening{target: target, pools: pools, closers: []func() error{pools.Close}}
	registry, err := opened.registry(ctx, o)
	if err != nil {
		return nil, errors.Join(o.withCure(err), opened.close()) //nolint:contextcheck // it has a limit of its own
	}
	return registry, nil
}

// explain returns an error of Connect as the user gets it.
func (t Target) explain(err error) error {
	return fmt.Errorf("%w: connect to %s: %w", t.sentinel(err), t.Redacted, failure.WithCure(err))
}

var errReadOnly = errors.New("the session is read-only: the server is a standby, or default_transaction_read_only is on for the user or the database")

// checkWritable returns an error if transactions of PostgreSQL are read-only by default.
func (t Target) checkWritable(ctx context.Context, p *Pools) error {
	if !t.HasIsolation {
		return nil
	}
	readOnly := false
	err := p.DB.GetContext(ctx, &readOnly, "SELECT current_setting('transaction_read_only') = 'on'")
	if err == nil && readOnly {
		err = errReadOnly
	}
	return err
}

// withCure adds to an error about missing tables that Open itself can create them.
func (o Options) withCure(err error) error {
	missing := locktable.Is(err, locktable.NoTable) || locktable.Is(err, locktable.NoFence) || locktable.Is(err, locktable.NoFenceOfFive)
	if o.Migrate == nil && missing {
		return fmt.Errorf("%w; or set Migrate: migrations.Up in the options of Open", err)
	}
	return err
}

// migrate creates the tables over connections of its own: a migration may take longer than patience.
func (t Target) migrate(ctx context.Context, o Options) error {
	pools, err := t.Connect(ctx, Need{Connections: connections, Create: true})
	if err != nil {
		return t.explain(err)
	}
	if err := locktable.CheckServer(ctx, pools.DB.DB, t.Dialect, o.Repository.Prefix, o.Repository.Unverified); err != nil {
		return errors.Join(failure.Of(err, ""), pools.Close())
	}
	err = o.Migrate(ctx, pools.DB.DB, t.Dialect, &dialect.MigrateOptions{Prefix: o.Repository.Prefix, Layout: o.Repository.Layout, TTL: o.Repository.TTL})
	if err != nil {
		err = fmt.Errorf("%w: create the tables: %w", t.sentinel(err), failure.WithCure(err))
	}
	return errors.Join(err, pools.Close())
}

// check checks the options, without a connection.
func (t Target) check(ctx context.Context, o Options) error {
	db := sql.OpenDB(nowhere{})
	defer func() { _ = db.Close() }() // it has no connections
	if o.Repository.Layout == 0 {
		o.Repository.Layout = dialect.Spring7 // then the database is not asked
	}
	switch {
	case o.Repository.Acquirers != nil || o.Repository.Turns != nil || o.Repository.MultiStatements:
		return fmt.Errorf("%w: Acquirers, Turns and MultiStatements are chosen by Open", sqllock.ErrInvalid)
	case o.Listen != nil && o.Registry.Waker != nil:
		return fmt.Errorf("%w: Wake and a Waker: Open makes one itself", sqllock.ErrInvalid)
	case o.NoRenew && o.Registry.AutoRenew:
		return fmt.Errorf("%w: NoRenew and AutoRenew", sqllock.ErrInvalid)
	}
	repository, err := sqllock.NewRepository(ctx, db, t.Dialect, &o.Repository)
	if err != nil {
		return err
	}
	_, err = sqllock.NewRegistry(repository, &o.Registry)
	return err
}

// sentinel returns what an error of the database is to the user.
func (t Target) sentinel(err error) error {
	switch {
	case errors.Is(err, ErrCharset):
		return sqllock.ErrInvalid
	case errors.Is(err, dialect.ErrState):
		return sqllock.ErrSchema
	case errors.Is(err, errReadOnly), t.Dialect.Classify(err) == dialect.ReadOnly:
		return sqllock.ErrReadOnly
	default:
		return sqllock.ErrDatabase
	}
}

// nowhere makes no connections.
type nowhere struct{}

var errNowhere = errors.New("no connection is needed to check options")

func (nowhere) Connect(context.Context) (driver.Conn, error) { return nil, errNowhere }
func (nowhere) Driver() driver.Driver                        { return nil }

// An opening is what Open has opened so far.
type opening struct {
	target  Target
	pools   *Pools
	closers []func() error // the last is called first
}

func (p *opening) registry(ctx context.Context, o Options) (*sqllock.Registry, error) {
	if o.Listen != nil {
		listener, err := o.Listen(ctx, p.target.Source)
		if err != nil {
			return nil, err
		}
		p.closers = append(p.closers, listener.Close)
		o.Repository.Notify, o.Registry.Waker = true, listener
	}
	o.Repository.Acquirers, o.Repository.MultiStatements = nil, p.pools.MultiStatements
	if p.pools.Acquirers != nil {
		o.Repository.Acquirers = p.pools.Acquirers.DB
	}
	if p.pools.Turns != nil {
		o.Repository.Turns = p.pools.Turns.DB
	}
	if p.pools.Pooler != nil && o.Registry.Fair {
		return nil, fmt.Errorf("%w: Fair: %w", sqllock.ErrInvalid, p.pools.Pooler)
	}
	if p.pools.Pooler != nil {
		for _, one := range o.Repository.Observers {
			if one != nil && one.Fallback != nil {
				one.Fallback(ctx, observe.Fallback{Reason: p.pools.Pooler})
			}
		}
	}
	d, err := p.dialect(ctx, o.Repository)
	if err != nil {
		return nil, err
	}
	repository, err := sqllock.NewRepository(ctx, p.pools.DB.DB, d, &o.Repository)
	if err != nil {
		return nil, err
	}
	o.Registry.AutoRenew = !o.NoRenew
	after := o.Registry.OnClose
	o.Registry.OnClose = p.close
	registry, err := sqllock.NewRegistry(repository, &o.Registry)
	if err == nil && after != nil { // the user's are closed after ours, and only if there is a registry
		p.closers = append([]func() error{after}, p.closers...)
	}
	return registry, err
}

// dialect returns the dialect for a repository. With a given layout NewRepository does not look what fencing tokens
// come from, and a wrong guess would fail each acquisition. A source that is missing is no error: the first
// acquisition says so.
func (p *opening) dialect(ctx context.Context, o sqllock.RepositoryOptions) (dialect.Dialect, error) {
	d := p.target.Dialect
	if o.Layout == 0 || o.DisableFencing || d.Name != dialect.MySQL().Name {
		return d, nil
	}
	names, err := dialect.NamesFor(o.Prefix)
	if err != nil {
		return d, err
	}
	sequence, err := locktable.HasSequence(ctx, p.pools.DB.DB, d, names)
	switch {
	case locktable.Is(err, locktable.WrongTable):
		return d, fmt.Errorf("%w: %w", sqllock.ErrSchema, err)
	case err != nil && !locktable.Is(err, locktable.NoTable):
		return d, fmt.Errorf("%w: %w", sqllock.ErrDatabase, failure.WithCure(err))
	case sequence:
		return d.WithSequence(), nil
	default:
		return d, nil
	}
}

// close closes everything, within a limit: a server that is away does not answer goodbyes.
func (p *opening) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, err := bounded.Do(ctx, 0, func() (struct{}, error) {
		var all error
		for i := len(p.closers) - 1; i >= 0; i-- {
			all = errors.Join(all, p.closers[i]())
		}
		return struct{}{}, all
	}, nil)
	if err != nil {
		return fmt.Errorf("%w: close: %w", sqllock.ErrDatabase, err)
	}
	return nil
}
