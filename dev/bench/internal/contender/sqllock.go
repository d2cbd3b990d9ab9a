package contender

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/notify"
	"github.com/sqllock/sqllock/migrations"
)

// A variant is a configuration of sqllock.
type variant struct {
	name, settings string
	quick          bool
	loads          []string   // as Contender.Only; nil is all
	only           []database // nil is all
	parameters     string     // of the DSN
	notify         bool       // releases wake waiters
	tune           func(*sqllock.RepositoryOptions, *sqllock.RegistryOptions)
}

// variants are the configurations that are compared. To add one, add a line.
var variants = []variant{
	{name: "serializable", quick: true, settings: "the default"},
	{name: "read committed", loads: one, only: servers, settings: "Isolation: ReadCommitted", tune: isolated(sqllock.ReadCommitted)},
	{name: "autocommit", quick: true, loads: sending, settings: "Isolation: Autocommit", tune: isolated(sqllock.Autocommit)},
	{
		name: "serializable, each alone", loads: []string{"wire", "pairs 1", "pairs 64"}, only: []database{postgresPGX, mariaDB, sqlite},
		settings: "the default isolation, DisableBatching", tune: alone,
	},
	{
		name: "autocommit, binary_parameters", loads: one, only: []database{postgresPQ},
		settings: "Isolation: Autocommit, binary_parameters=yes", parameters: "&binary_parameters=yes", tune: isolated(sqllock.Autocommit),
	},
	{
		name: "autocommit, interpolateParams", loads: one, only: []database{mariaDB},
		settings: "Isolation: Autocommit, interpolateParams=true", parameters: "?interpolateParams=true", tune: isolated(sqllock.Autocommit),
	},
	{
		name: "notify", quick: true, loads: []string{"hand-off", "pairs 1", "pairs 64"}, only: []database{postgresPQ, postgresPGX},
		settings: "the default isolation; releases wake waiters over LISTEN and NOTIFY", notify: true,
	},
	{name: "hand-off", quick: true, loads: []string{"hot key"}, settings: "the default isolation, HandOff", tune: handOff},
}

// servers are the databases on which isolations differ: all transactions of SQLite are
// serializable.
var servers = []database{postgresPQ, postgresPGX, mariaDB}

// The loads for variants that differ little. Waiting sends the same statements at all
// isolations.
var (
	sending = []string{"wire", "pairs", "delay", "hot key"}
	one     = []string{"wire", "pairs 1", "delay 1"}
)

func isolated(i sqllock.Isolation) func(*sqllock.RepositoryOptions, *sqllock.RegistryOptions) {
	return func(o *sqllock.RepositoryOptions, _ *sqllock.RegistryOptions) { o.Isolation = i }
}

func alone(o *sqllock.RepositoryOptions, _ *sqllock.RegistryOptions) { o.DisableBatching = true }

func handOff(_ *sqllock.RepositoryOptions, o *sqllock.RegistryOptions) { o.HandOff = true }

func sqllocks() []Contender {
	var all []Contender
	for _, d := range databases {
		for _, v := range variants {
			if v.only == nil || slices.ContainsFunc(v.only, func(o database) bool { return o.short == d.short }) {
				all = append(all, v.contender(d))
			}
		}
	}
	return all
}

func (v variant) contender(d database) Contender {
	return Contender{
		Name:     "sqllock " + v.name + "/" + d.short,
		Library:  "github.com/sqllock/sqllock",
		Version:  "this checkout",
		Database: d.kind,
		Settings: v.settings,
		Quick:    v.quick,
		Only:     v.loads,
		Prepare:  func(ctx context.Context, at Place) error { return d.with(ctx, at, d.migrate) },
		Open: func(ctx context.Context, at Place) (Session, error) {
			return v.open(ctx, d, at)
		},
	}
}

func (d database) migrate(ctx context.Context, db *sql.DB) error {
	return migrations.Up(ctx, db, d.dialect(), nil)
}

func (v variant) open(ctx context.Context, d database, at Place) (Session, error) {
	if d.kind != durable.SQLite {
		at.DSN += v.parameters
	}
	db, err := d.open(at)
	if err != nil {
		return nil, err
	}
	session := &sqllockSession{pool: pool{db}}
	if err := v.complete(ctx, session, d, at); err != nil {
		return nil, errors.Join(err, session.Close()) //nolint:contextcheck // Close has no such parameter
	}
	return session, nil
}

// complete creates the repository and the registry over the pool of a session.
func (v variant) complete(ctx context.Context, s *sqllockSession, d database, at Place) (err error) {
	repositoryOptions := sqllock.RepositoryOptions{Notify: v.notify}
	registryOptions := sqllock.RegistryOptions{TTL: at.TTL}
	if v.tune != nil {
		v.tune(&repositoryOptions, &registryOptions)
	}
	if v.notify {
		if s.listener, err = notify.Listen(ctx, at.DSN, nil); err != nil {
			return err
		}
		registryOptions.Waker = s.listener
	}
	s.dialect = d.dialect()
	repository, err := sqllock.NewRepository(ctx, s.db, s.dialect, &repositoryOptions)
	if err != nil {
		return err
	}
	s.registry, err = sqllock.NewRegistry(repository, &registryOptions)
	return err
}

type sqllockSession struct {
	pool
	dialect  dialect.Dialect
	registry *sqllock.Registry
	listener *notify.Listener // of the variant that has one
}

func (s *sqllockSession) Connections() int {
	if s.listener == nil {
		return s.pool.Connections()
	}
	return s.pool.Connections() + 1
}

func (s *sqllockSession) Lock(ctx context.Context, key string) (Unlock, error) {
	lock, err := s.registry.Obtain(key)
	if err != nil {
		return nil, err
	}
	lease, err := lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return lease.Unlock, nil
}

func (s *sqllockSession) Close() error {
	var errs []error
	if s.registry != nil {
		errs = append(errs, s.registry.Close(context.Background()))
	}
	if s.listener != nil {
		errs = append(errs, s.listener.Close())
	}
	return errors.Join(append(errs, s.pool.Close())...)
}
