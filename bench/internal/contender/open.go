package contender

import (
	"context"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/bench/internal/durable"
	"github.com/sqllock/sqllock/mysqllock"
	"github.com/sqllock/sqllock/pgxlock"
	"github.com/sqllock/sqllock/pqlock"
	"github.com/sqllock/sqllock/sqlitelock"
)

// openConnections is how many connections Open has at most.
const openConnections = 4

// opened are the registries of pgxlock.Open and the like: sqllock as a newcomer has it.
func opened() []Contender {
	return []Contender{
		openedBy(postgresPGX, func(ctx context.Context, at Place) (*sqllock.Registry, error) {
			return pgxlock.Open(ctx, at.DSN, &pgxlock.Options{Registry: sqllock.RegistryOptions{TTL: at.TTL}})
		}),
		openedBy(postgresPQ, func(ctx context.Context, at Place) (*sqllock.Registry, error) {
			return pqlock.Open(ctx, at.DSN, &pqlock.Options{Registry: sqllock.RegistryOptions{TTL: at.TTL}})
		}),
		openedBy(mariaDB, func(ctx context.Context, at Place) (*sqllock.Registry, error) {
			return mysqllock.Open(ctx, at.DSN, &mysqllock.Options{Registry: sqllock.RegistryOptions{TTL: at.TTL}})
		}),
		openedBy(sqlite, func(ctx context.Context, at Place) (*sqllock.Registry, error) {
			// As the other contenders on SQLite, its commits survive a crash of the machine.
			dsn := "file:" + at.DSN + "/bench.db?_pragma=synchronous(FULL)"
			return sqlitelock.Open(ctx, dsn, &sqlitelock.Options{Registry: sqllock.RegistryOptions{TTL: at.TTL}})
		}),
	}
}

func openedBy(d database, open func(context.Context, Place) (*sqllock.Registry, error)) Contender {
	pkg := map[string]string{"pgx": "pgxlock", "pq": "pqlock", "mysql": "mysqllock", "sqlite": "sqlitelock"}[d.short]
	settings := pkg + ".Open, by its defaults: a pool of its own, of four connections"
	if d.kind == durable.SQLite {
		settings += "; synchronous(FULL)"
	}
	return Contender{
		Name:     "sqllock open/" + d.short,
		Library:  "github.com/sqllock/sqllock",
		Version:  "this checkout",
		Database: d.kind,
		Settings: settings,
		Quick:    true,
		Prepare:  func(ctx context.Context, at Place) error { return d.with(ctx, at, d.migrate) },
		Open: func(ctx context.Context, at Place) (Session, error) {
			registry, err := open(ctx, at)
			if err != nil {
				return nil, err
			}
			return &openedSession{registry: registry}, nil
		},
	}
}

type openedSession struct{ registry *sqllock.Registry }

// Connections implements [Session]: it is how many there may be.
func (s *openedSession) Connections() int { return openConnections }

func (s *openedSession) Lock(ctx context.Context, key string) (Unlock, error) {
	lease, err := s.registry.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	return lease.Unlock, nil
}

func (s *openedSession) Close() error { return s.registry.Close(context.Background()) }
