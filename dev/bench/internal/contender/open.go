package contender

import (
	"context"
	"slices"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/drivers/mysqllock"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/drivers/pqlock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
)

// openConnections is how many connections Open has at most.
const openConnections = 4

// opened are the registries of pgxlock.Open and the like: sqllock as a newcomer has it; and the same
// for those who know its single locks only.
func opened() []Contender {
	return slices.Concat(
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
	)
}

func openedBy(d database, open func(context.Context, Place) (*sqllock.Registry, error)) []Contender {
	pkg := map[string]string{"pgx": "pgxlock", "pq": "pqlock", "mysql": "mysqllock", "sqlite": "sqlitelock"}[d.short]
	settings := pkg + ".Open, by its defaults: a pool of its own, of four connections"
	if d.kind == durable.SQLite {
		settings += "; synchronous(FULL)"
	}
	session := func(ctx context.Context, at Place) (*openedSession, error) {
		registry, err := open(ctx, at)
		return &openedSession{registry}, err
	}
	joint := Contender{
		Name:     "sqllock open/" + d.short,
		Library:  "github.com/sqllock/sqllock",
		Version:  "this checkout",
		Database: d.kind,
		Settings: settings,
		Quick:    true,
		Loads:    append([]string{tenKeys}, anything...),
		Prepare:  func(ctx context.Context, at Place) error { return d.with(ctx, at, d.migrate) },
		Open: func(ctx context.Context, at Place) (Session, error) {
			s, err := session(ctx, at)
			return &jointSession{s}, err
		},
	}
	single := joint
	single.Name = "sqllock open, single locks/" + d.short
	single.Settings = "the same; a plain lock for each key"
	single.Loads = []string{tenKeys}
	single.Open = func(ctx context.Context, at Place) (Session, error) { return session(ctx, at) }
	return []Contender{joint, single}
}

type openedSession struct{ registry *sqllock.Registry }

// Connections implements [Session]: it is how many there may be.
func (s *openedSession) Connections() int { return openConnections }

func (s *openedSession) Lock(ctx context.Context, key string) (Unlock, error) {
	return unlocking(s.registry.Lock(ctx, key))
}

func (s *openedSession) Close() error { return s.registry.Close(context.Background()) }

// A jointSession has joint locks, too.
type jointSession struct{ *openedSession }

// LockAll implements [JointSession].
func (s *jointSession) LockAll(ctx context.Context, keys []string) (Unlock, error) {
	lock, err := s.registry.ObtainAll(keys...)
	if err != nil {
		return nil, err
	}
	return unlocking(lock.Lock(ctx))
}

func unlocking(lease *sqllock.Lease, err error) (Unlock, error) {
	if err != nil {
		return nil, err
	}
	return lease.Unlock, nil
}
