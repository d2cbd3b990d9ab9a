package contender

import (
	"context"
	"database/sql"
	"errors"

	"cirello.io/pglock"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// pglocks are cirello.io/pglock with its defaults: a lease of 20 s and a heartbeat every 5 s.
func pglocks() []Contender {
	return []Contender{{
		Name:     "pglock/pgx",
		Library:  "cirello.io/pglock",
		Database: durable.Postgres,
		Settings: "the defaults: lease 20 s, heartbeat 5 s",
		Quick:    true,
		Loads:    anything, // with ten keys a worker, releases have failed with: lock is already released
		Prepare: func(ctx context.Context, at Place) error {
			return postgresPGX.with(ctx, at, func(_ context.Context, db *sql.DB) error {
				client, err := pglock.UnsafeNew(db)
				if err != nil {
					return err
				}
				return client.TryCreateTable()
			})
		},
		Open: func(_ context.Context, at Place) (Session, error) { return openPglock(at) },
	}}
}

type pglockSession struct {
	pool
	client *pglock.Client
}

func openPglock(at Place) (Session, error) {
	db, err := postgresPGX.open(at)
	if err != nil {
		return nil, err
	}
	client, err := pglock.UnsafeNew(db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &pglockSession{pool{db}, client}, nil
}

func (s *pglockSession) Lock(ctx context.Context, key string) (Unlock, error) {
	lock, err := s.client.AcquireContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.client.ReleaseContext(ctx, lock) }, nil
}
