package contender

import (
	"context"
	"database/sql"
	"errors"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/notify"
	"github.com/sqllock/sqllock/migrations"
)

// A variant is a configuration of sqllock over a pool of the user's.
type variant struct {
	name, settings string
	loads          []string
	on             []database
	repository     sqllock.RepositoryOptions // if Notify is set, releases wake waiters
	registry       sqllock.RegistryOptions
}

// pools are the databases on which most variants are measured.
var pools = []database{postgresPGX, mariaDB}

// variants are the configurations that are compared. To add one, add a line.
var variants = []variant{
	{name: "serializable", settings: "the default", loads: anything, on: pools},
	{
		name: "autocommit", settings: "Isolation: Autocommit", loads: append([]string{"hot key"}, sending...), on: pools,
		repository: sqllock.RepositoryOptions{Isolation: sqllock.Autocommit},
	},
	{
		name: "notify", settings: "the default isolation; releases wake waiters over LISTEN and NOTIFY",
		loads: []string{"hand-off", "pairs 1", "pairs 64"}, on: []database{postgresPQ, postgresPGX},
		repository: sqllock.RepositoryOptions{Notify: true},
	},
	{
		name: "hand-off", settings: "the default isolation, HandOff", loads: []string{"hot key"}, on: pools,
		registry: sqllock.RegistryOptions{HandOff: true},
	},
}

func sqllocks() []Contender {
	var all []Contender
	for _, v := range variants {
		for _, d := range v.on {
			all = append(all, v.contender(d))
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
		Quick:    true,
		Loads:    v.loads,
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
	v.registry.TTL = at.TTL
	if v.repository.Notify {
		if s.listener, err = notify.Listen(ctx, at.DSN, nil); err != nil {
			return err
		}
		v.registry.Waker = s.listener
	}
	repository, err := sqllock.NewRepository(ctx, s.db, d.dialect(), &v.repository)
	if err != nil {
		return err
	}
	s.registry, err = sqllock.NewRegistry(repository, &v.registry)
	return err
}

type sqllockSession struct {
	pool
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
	return Unlocking(s.registry.Lock(ctx, key))
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
