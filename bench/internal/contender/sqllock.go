package contender

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/bench/internal/durable"
	"github.com/sqllock/sqllock/migrations"
)

// A variant is a way to set sqllock up.
type variant struct {
	name, settings string
	quick          bool
	loads          []string   // beginnings; nil is all
	only           []database // nil is all
	connections    int        // 0 is as many as the others have
	parameters     string     // of the DSN
	tune           func(*sqllock.RepositoryOptions, *sqllock.RegistryOptions)
}

// variants are what is compared of sqllock; another one is another line.
var variants = []variant{
	{name: "serializable", quick: true, settings: "the default"},
	{name: "read committed", loads: speed, tune: isolated(sqllock.ReadCommitted)},
	{name: "statement", quick: true, tune: isolated(sqllock.Statement)},
	{name: "serializable, each alone", loads: slices.Concat(speed, crowded), settings: "without group commit", tune: alone},
	{name: "serializable, 2 connections", loads: crowded, connections: 2, settings: "the default isolation, over a pool of two"},
	{name: "statement, 2 connections", loads: crowded, connections: 2, settings: "a pool of two", tune: isolated(sqllock.Statement)},
	{
		name: "statement, binary_parameters", loads: speed, only: []database{postgresPQ},
		parameters: "&binary_parameters=yes", tune: isolated(sqllock.Statement),
	},
	{
		name: "statement, interpolateParams", loads: speed, only: []database{mariaDB},
		parameters: "?interpolateParams=true", tune: isolated(sqllock.Statement),
	},
}

// Loads that are enough for variants which differ in little.
var (
	speed   = []string{"wire", "pairs 1", "pairs 64", "delay 1"}
	crowded = []string{"pairs 64", "pairs 256", "delay 64"}
)

func isolated(i sqllock.Isolation) func(*sqllock.RepositoryOptions, *sqllock.RegistryOptions) {
	return func(o *sqllock.RepositoryOptions, _ *sqllock.RegistryOptions) { o.Isolation = i }
}

func alone(o *sqllock.RepositoryOptions, _ *sqllock.RegistryOptions) { o.WithoutGroupCommit = true }

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
		Open: func(_ context.Context, at Place) (Session, error) {
			return v.open(d, at) //nolint:contextcheck // NewRepository has no such parameter
		},
	}
}

func (d database) migrate(ctx context.Context, db *sql.DB) error {
	return migrations.Up(ctx, db, d.dialect(), nil)
}

func (v variant) open(d database, at Place) (Session, error) {
	if v.connections > 0 {
		at.Connections = v.connections
	}
	if d.kind != durable.SQLite {
		at.DSN += v.parameters
	}
	db, err := d.open(at)
	if err != nil {
		return nil, err
	}
	var repositoryOptions sqllock.RepositoryOptions
	registryOptions := sqllock.RegistryOptions{TTL: at.TTL}
	if v.tune != nil {
		v.tune(&repositoryOptions, &registryOptions)
	}
	repository, err := sqllock.NewRepository(sqlx.NewDb(db, d.driver), d.dialect(), &repositoryOptions)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	registry, err := sqllock.NewRegistry(repository, &registryOptions)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &sqllockSession{pool{db}, repository, registry}, nil
}

type sqllockSession struct {
	pool
	repository *sqllock.Repository
	registry   *sqllock.Registry
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
	return errors.Join(s.registry.Close(context.Background()), s.pool.Close())
}
