package contender

import (
	"context"
	"database/sql"
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

// getLock is MariaDB's session lock without a library: the two statements that
// github.com/sanketplus/go-mysql-lock sends, on a connection for each lock. It stands in for
// that library, which the module proxy does not have, and is the limit for it.
func getLock() []Contender {
	return []Contender{{
		Name:     "GET_LOCK/mysql",
		Library:  "the bare statements",
		Version:  "-",
		Database: durable.MariaDB,
		Settings: "one connection for each lock that is held or waited for, no lease",
		Quick:    true,
		Loads:    append([]string{tenKeysOfOne}, waiting...),
		Open: func(_ context.Context, at Place) (Session, error) {
			db, err := mariaDB.open(at)
			if err != nil {
				return nil, err
			}
			return getLockSession{pool{db}}, nil
		},
	}}
}

type getLockSession struct{ pool }

var errNotGranted = errors.New("GET_LOCK did not give the lock")

func (s getLockSession) Lock(ctx context.Context, key string) (Unlock, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	const forever = 1_000_000 // seconds
	var granted sql.NullInt64
	err = conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", key, forever).Scan(&granted)
	if err == nil && granted.Int64 != 1 {
		err = errNotGranted
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return func(ctx context.Context) error {
		_, err := conn.ExecContext(ctx, "DO RELEASE_LOCK(?)", key)
		return errors.Join(err, conn.Close())
	}, nil
}
