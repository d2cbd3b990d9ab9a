package contender

import (
	"context"
	"errors"
	"hash/fnv"

	"github.com/allisson/go-pglock/v3"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// advisory are PostgreSQL's session locks, by github.com/allisson/go-pglock.
// They have no time-to-live: a lock lasts as long as its connection.
func advisory() []Contender {
	return []Contender{{
		Name:     "go-pglock/pgx",
		Library:  "github.com/allisson/go-pglock/v3",
		Database: durable.Postgres,
		Settings: "advisory locks: one connection for each lock that is held or waited for, no lease",
		Quick:    true,
		Loads:    append([]string{tenKeysOfOne}, waiting...),
		Open: func(_ context.Context, at Place) (Session, error) {
			db, err := postgresPGX.open(at)
			if err != nil {
				return nil, err
			}
			return advisorySession{pool{db}}, nil
		},
	}}
}

// tenKeysOfOne is ten keys for those that need a connection for each lock: 16 workers would wait for each
// other's connections for ever.
const tenKeysOfOne = tenKeys + " 1"

type advisorySession struct{ pool }

// Lock takes a connection, acquires a lock on it, and gives it back after the release.
func (s advisorySession) Lock(ctx context.Context, key string) (Unlock, error) {
	lock, err := pglock.NewLock(ctx, number(key), s.db)
	if err != nil {
		return nil, err
	}
	if err := lock.WaitAndLock(ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return func(ctx context.Context) error { return errors.Join(lock.Unlock(ctx), lock.Close()) }, nil
}

// number returns the number of the advisory lock for a key.
func number(key string) int64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key)) // it never fails
	return int64(hash.Sum64())     //nolint:gosec // any number will do
}
