package session

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/turns"
	"github.com/sqllock/sqllock/observe"
)

// connections is how many connections the pools of a registry have at most. One of them is kept
// free for renewals: see [transaction.Gate].
const connections = 5

// Options are what the public packages are given.
type Options struct {
	Repository sqllock.RepositoryOptions
	Registry   sqllock.RegistryOptions
	// Migrate, unless it is nil, creates the tables, or brings them up to date.
	Migrate dialect.Migrate
	// Wake has releases wake waiters, where the target has a bell.
	Wake bool
	// Listen, unless it is nil, connects what wakes waiters. dsn is the Source of the target.
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
		return nil, failure.As(sqllock.ErrInvalid, "", err)
	}
	return OpenTarget(ctx, target, o)
}

// OpenTarget is [Open] for a target that is known.
func OpenTarget(ctx context.Context, target Target, o Options) (*sqllock.Registry, error) {
	if err := target.check(ctx, o); err != nil {
		return nil, err
	}
	if o.Migrate != nil {
		if err := target.migrate(ctx, o); err != nil {
			return nil, err
		}
	}
	pools, err := target.Connect(ctx, Need{
		Connections: connections, Acquirers: o.Repository.Isolation == sqllock.Serializable, Impatient: true, Unverified: o.Repository.Unverified,
		Wake: o.Wake,
	})
	if err != nil {
		return nil, target.explain(err)
	}
	if err := cmp.Or(target.checkWritable(ctx, pools), pools.checkTransactions(ctx)); err != nil {
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
	if errors.Is(err, sqllock.ErrInvalid) {
		return err // says what the server is
	}
	return failure.As(t.sentinel(err), "connect to "+t.Redacted, failure.WithCure(err))
}

var errReadOnly = errors.New("the session is read-only: the server is a standby, or default_transaction_read_only is on for the user or the database")

// checkWritable returns an error if transactions of PostgreSQL are read-only by default.
func (t Target) checkWritable(ctx context.Context, p *Pools) error {
	if !t.HasIsolation {
		return nil
	}
	readOnly := false
	err := p.DB.GetContext(ctx, &readOnly, sqltext.Of(t.Dialect).Statements(dialect.Spring7, sqltext.Names{}).ReadOnly)
	if err == nil && readOnly {
		err = errReadOnly
	}
	return err
}

// errStatements is why a pooler closes a connection at BEGIN. lib/pq does not say what the pooler has said.
var errStatements = errors.New("the connection ends at BEGIN, as in PgBouncer's statement pooling mode")

// checkTransactions returns an error if there can be none behind a pooler.
func (p *Pools) checkTransactions(ctx context.Context) error {
	if p.Pooler == nil {
		return nil
	}
	tx, err := p.DB.BeginTx(ctx, nil)
	switch {
	case errors.Is(err, driver.ErrBadConn):
		return fmt.Errorf("%w: %w", errStatements, err)
	case err != nil:
		return err
	default:
		return tx.Rollback()
	}
}

// withCure adds to an error about missing tables that Open itself can create them.
func (o Options) withCure(err error) error {
	missing := dbcall.Is(err, dbcall.NoTable) || dbcall.Is(err, dbcall.NoFence) || dbcall.Is(err, dbcall.NoFenceOfFive)
	if o.Migrate == nil && missing {
		return fmt.Errorf("%w; or set Migrate: migrations.Up in the options of Open", err)
	}
	return err
}

// migrate creates the tables over connections of its own: a migration may take longer than patience.
func (t Target) migrate(ctx context.Context, o Options) error {
	pools, err := t.Connect(ctx, Need{Connections: connections, Create: true, Unverified: o.Repository.Unverified})
	if err != nil {
		return t.explain(err)
	}
	if err := probe.CheckServer(ctx, pools.DB.DB, sqltext.Of(t.Dialect), o.Repository.Prefix, o.Repository.Unverified); err != nil {
		return errors.Join(failure.Of(err, ""), pools.Close())
	}
	err = o.Migrate(ctx, pools.DB.DB, t.Dialect, &dialect.MigrateOptions{Prefix: o.Repository.Prefix, Layout: o.Repository.Layout, TTL: o.Repository.TTL})
	if err != nil {
		err = failure.As(t.sentinel(err), "create the tables", failure.WithCure(err))
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
	case errors.Is(err, errReadOnly), sqltext.Of(t.Dialect).Classify(err) == sqltext.ReadOnly:
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
	if p.pools.Pooler != nil {
		if err := p.checkFair(ctx, o); err != nil {
			return nil, err
		}
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
	repository, err := sqllock.NewRepository(p.pools.Watching(ctx), p.pools.DB.DB, d, &o.Repository)
	if err != nil {
		return nil, err
	}
	after := o.Registry.OnClose
	o.Registry.OnClose = p.close
	registry, err := sqllock.NewRegistry(repository, &o.Registry)
	if err == nil && after != nil { // the user's are closed after ours, and only if there is a registry
		p.closers = append([]func() error{after}, p.closers...)
	}
	return registry, err
}

// checkFair returns an error if callers of a fair registry would keep the few sessions of a pooler. One that gives
// a client a session for as long as it is connected keeps no settings either, and serves them.
func (p *opening) checkFair(ctx context.Context, o Options) error {
	if !o.Registry.Fair {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, OpenTimeout) // a pooler may have no session left
	defer cancel()
	err := turns.CheckDirect(ctx, p.pools.DB.DB, sqltext.Of(p.target.Dialect).Turns(sqltext.Names{}).Session)
	switch {
	case dbcall.Is(err, dbcall.WrongSession):
		return fmt.Errorf("%w: Fair: %w: %w", sqllock.ErrInvalid, p.pools.Pooler, err)
	case err != nil:
		return failure.As(sqllock.ErrDatabase, "Fair", failure.WithCure(err))
	default:
		return nil
	}
}

// dialect returns the dialect for a repository. With a given layout NewRepository does not look what fencing tokens
// come from, and a wrong guess would fail each acquisition. A source that is missing is no error: the first
// acquisition says so.
func (p *opening) dialect(ctx context.Context, o sqllock.RepositoryOptions) (dialect.Dialect, error) {
	d := p.target.Dialect
	texts := sqltext.Of(d)
	if o.Layout == 0 || o.DisableFencing || texts.Name != sqltext.MySQL().Name {
		return d, nil
	}
	names, err := sqltext.NamesFor(o.Prefix)
	if err != nil {
		return d, err
	}
	sequence, err := probe.HasSequence(ctx, p.pools.DB.DB, texts, names)
	switch {
	case dbcall.Is(err, dbcall.WrongTable):
		return d, failure.As(sqllock.ErrSchema, "", err)
	case err != nil && !dbcall.Is(err, dbcall.NoFence) && !dbcall.Is(err, dbcall.NoFenceOfFive):
		return d, failure.As(sqllock.ErrDatabase, "", failure.WithCure(err))
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
		return failure.As(sqllock.ErrDatabase, "close", err)
	}
	return nil
}
