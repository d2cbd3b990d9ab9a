package contender

import (
	"context"
	"database/sql"
	"errors"

	"cirello.io/pglock"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// pglocks are cirello.io/pglock with both drivers and its defaults: a lease of 20 s and a
// heartbeat every 5 s.
func pglocks() []Contender {
	var all []Contender
	for _, d := range []database{postgresPQ, postgresPGX} {
		all = append(all, Contender{
			Name:     "pglock/" + d.short,
			Library:  "cirello.io/pglock",
			Database: durable.Postgres,
			Settings: "the defaults: lease 20 s, heartbeat 5 s",
			Quick:    d.short == "pgx",
			Also:     []string{tenKeys},
			Cannot: map[string]string{
				permits + " 8": noTry, permits + " 32": noTry,
			},
			Only: map[string][]string{"pq": {"wire", "pairs 1", "pairs 64", "delay 1"}}[d.short],
			Prepare: func(ctx context.Context, at Place) error {
				return d.with(ctx, at, func(_ context.Context, db *sql.DB) error {
					client, err := pglock.UnsafeNew(db)
					if err != nil {
						return err
					}
					return client.TryCreateTable()
				})
			},
			Open: func(_ context.Context, at Place) (Session, error) { return openPglock(d, at) },
		})
	}
	return all
}

const noTry = "with FailIfLocked and several workers on a key, releases have failed with: lock is already released"

type pglockSession struct {
	pool
	client *pglock.Client
}

func openPglock(d database, at Place) (Session, error) {
	db, err := d.open(at)
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
