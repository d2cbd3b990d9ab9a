package contender

import (
	"context"
	"database/sql"
	"errors"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

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
