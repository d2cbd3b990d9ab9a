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
	var all []Contender
	for _, d := range []database{postgresPQ, postgresPGX} {
		var also []string
		if d.short == "pgx" {
			also = several
		}
		all = append(all, Contender{
			Name:     "go-pglock/" + d.short,
			Library:  "github.com/allisson/go-pglock/v3",
			Database: durable.Postgres,
			Settings: "advisory locks: one connection for each lock that is held or waited for, no lease",
			Quick:    d.short == "pgx",
			Also:     also,
			Cannot:   map[string]string{"waiters": "a thousand waiters would need a thousand connections", tenKeys + " 16": manyConnections},
			Open: func(_ context.Context, at Place) (Session, error) {
				db, err := d.open(at)
				if err != nil {
					return nil, err
				}
				return advisorySession{pool{db}}, nil
			},
		})
	}
	return all
}

type advisorySession struct{ pool }

func (s advisorySession) Lock(ctx context.Context, key string) (Unlock, error) {
	return s.lock(ctx, key, (*pglock.Lock).WaitAndLock, (*pglock.Lock).Unlock)
}

// RLock implements [ReadSession].
func (s advisorySession) RLock(ctx context.Context, key string) (Unlock, error) {
	return s.lock(ctx, key, (*pglock.Lock).WaitAndRLock, (*pglock.Lock).RUnlock)
}

// TryLock implements [TrySession].
func (s advisorySession) TryLock(ctx context.Context, key string) (Unlock, error) {
	try := func(lock *pglock.Lock, ctx context.Context) error {
		got, err := lock.Lock(ctx)
		if err == nil && !got {
			return ErrTaken
		}
		return err
	}
	return s.lock(ctx, key, try, (*pglock.Lock).Unlock)
}

// lock takes a connection, acquires a lock on it, and gives it back after the release.
func (s advisorySession) lock(ctx context.Context, key string, acquire, release func(*pglock.Lock, context.Context) error) (Unlock, error) {
	lock, err := pglock.NewLock(ctx, number(key), s.db)
	if err != nil {
		return nil, err
	}
	if err := acquire(&lock, ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return func(ctx context.Context) error { return errors.Join(release(&lock, ctx), lock.Close()) }, nil
}

// number returns the number of the advisory lock for a key.
func number(key string) int64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key)) // it never fails
	return int64(hash.Sum64())     //nolint:gosec // any number will do
}
