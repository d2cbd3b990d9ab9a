package contender

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/drivers/mysqllock"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/drivers/pqlock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
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
	complete := Contender{
		Name:     "sqllock open/" + d.short,
		Library:  "github.com/sqllock/sqllock",
		Version:  "this checkout",
		Database: d.kind,
		Settings: settings,
		Quick:    true,
		Also:     several,
		Prepare:  func(ctx context.Context, at Place) error { return d.with(ctx, at, d.migrate) },
		Open: func(ctx context.Context, at Place) (Session, error) {
			registry, err := open(ctx, at)
			if err != nil {
				return nil, err
			}
			return &completeSession{openedSession: openedSession{registry}}, nil
		},
	}
	single := complete
	single.Name = "sqllock open, single locks/" + d.short
	single.Settings = "the same; a plain lock for each key, permit or reader"
	single.Only, single.Also = several, nil
	single.Open = func(ctx context.Context, at Place) (Session, error) {
		registry, err := open(ctx, at)
		if err != nil {
			return nil, err
		}
		return &openedSession{registry}, nil
	}
	return []Contender{complete, single}
}

type openedSession struct{ registry *sqllock.Registry }

// Connections implements [Session]: it is how many there may be.
func (s *openedSession) Connections() int { return openConnections }

func (s *openedSession) Lock(ctx context.Context, key string) (Unlock, error) {
	return unlocking(s.registry.Lock(ctx, key))
}

// TryLock implements [TrySession].
func (s *openedSession) TryLock(ctx context.Context, key string) (Unlock, error) {
	lock, err := s.registry.Obtain(key)
	if err != nil {
		return nil, err
	}
	lease, err := lock.TryLock(ctx)
	if errors.Is(err, sqllock.ErrNotAcquired) {
		return nil, ErrTaken
	}
	return unlocking(lease, err)
}

func (s *openedSession) Close() error { return s.registry.Close(context.Background()) }

// A completeSession has all that sqllock makes of several rows.
type completeSession struct {
	openedSession

	semaphores, rwlocks sync.Map // by key
}

// LockAll implements [JointSession].
func (s *completeSession) LockAll(ctx context.Context, keys []string) (Unlock, error) {
	lock, err := s.registry.ObtainAll(keys...)
	if err != nil {
		return nil, err
	}
	return unlocking(lock.Lock(ctx))
}

// Acquire implements [PermitSession].
func (s *completeSession) Acquire(ctx context.Context, key string, permits int) (Unlock, error) {
	all, err := kept(&s.semaphores, key, func() (*semaphore.Semaphore, error) { return semaphore.New(s.registry, key, permits) })
	if err != nil {
		return nil, err
	}
	return unlocking(all.Acquire(ctx, 1))
}

// RLock implements [ReadSession].
func (s *completeSession) RLock(ctx context.Context, key string) (Unlock, error) {
	lock, err := kept(&s.rwlocks, key, func() (*rwlock.Lock, error) { return rwlock.New(s.registry, key) })
	if err != nil {
		return nil, err
	}
	return unlocking(lock.RLock(ctx))
}

// kept returns the value of a key, which is made once: callers of a process that share it wake each other.
func kept[V any](values *sync.Map, key string, open func() (V, error)) (V, error) {
	if value, ok := values.Load(key); ok {
		return value.(V), nil
	}
	value, err := open()
	if err != nil {
		return value, err
	}
	first, _ := values.LoadOrStore(key, value)
	return first.(V), nil
}

func unlocking(lease *sqllock.Lease, err error) (Unlock, error) {
	if err != nil {
		return nil, err
	}
	return lease.Unlock, nil
}
