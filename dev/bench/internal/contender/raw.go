package contender

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dialect"
)

// raw are the two statements alone, prepared: the texts of package dialect that acquire and
// release. This is the limit for any client that sends one statement for each step.
func raw() []Contender {
	var all []Contender
	for _, d := range []database{postgresPGX, mariaDB, sqlite} {
		all = append(all, rawContender("raw statements", "prepared; no waiting, no lease, no retries", d))
	}
	return append(all, rawSerializable(), rawNotify())
}

// rawSerializable are the same statements on connections whose transactions are serializable, as
// those that Open acquires with: the limit for two serializable round trips.
func rawSerializable() Contender {
	c := rawContender("raw statements, serializable", "prepared; each is a serializable transaction of its own", postgresPGX)
	c.Quick, c.Loads = false, []string{"pairs 1", "delay 1"}
	open := c.Open
	c.Open = func(ctx context.Context, at Place) (Session, error) {
		at.DSN += "&default_transaction_isolation=serializable"
		return open(ctx, at)
	}
	return c
}

func rawContender(name, settings string, d database) Contender {
	return Contender{
		Name:     name + "/" + d.short,
		Library:  "the bare statements",
		Version:  "-",
		Database: d.kind,
		Settings: settings,
		Quick:    true,
		Loads:    sending,
		Prepare:  func(ctx context.Context, at Place) error { return d.with(ctx, at, d.migrate) },
		Open:     func(ctx context.Context, at Place) (Session, error) { return openRaw(ctx, d, at, "") },
	}
}

// A prepared statement and the names of its parameters.
type prepared struct {
	*sql.Stmt
	names []any
}

type rawSession struct {
	pool
	acquire, remove prepared
	returning       bool
	last            atomic.Int64
}

// openRaw opens a session whose releases notify a channel, or "" for none.
func openRaw(ctx context.Context, d database, at Place, channel string) (*rawSession, error) {
	names, err := dialect.NamesFor("")
	if err != nil {
		return nil, err
	}
	names.Channel = channel
	db, err := d.open(at)
	if err != nil {
		return nil, err
	}
	s := &rawSession{pool: pool{db}, returning: d.kind != durable.MariaDB}
	texts := d.dialect().Statements(dialect.Spring7, names)
	if s.acquire, err = prepare(ctx, db, d, texts.Acquire); err == nil {
		s.remove, err = prepare(ctx, db, d, texts.Delete)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func prepare(ctx context.Context, db *sql.DB, d database, text string) (prepared, error) {
	text, names, err := sqlx.Named(text, map[string]any{
		"region": "region", "key": "key", "holder": "holder", "ttl": "ttl", "left": "left", "shift": "shift",
	})
	if err != nil {
		return prepared{}, err
	}
	if d.kind == durable.Postgres {
		text = sqlx.Rebind(sqlx.DOLLAR, text)
	}
	statement, err := db.PrepareContext(ctx, text)
	if err != nil {
		return prepared{}, fmt.Errorf("%s: %w", text, err)
	}
	return prepared{statement, names}, nil
}

func (p prepared) values(key, holder string) []any {
	values := make([]any, len(p.names))
	for i, name := range p.names {
		switch name {
		case "region":
			values[i] = sqllock.DefaultRegion
		case "key":
			values[i] = key
		case "holder":
			values[i] = holder
		case "ttl", "left":
			values[i] = sqllock.DefaultTTL.Microseconds()
		default:
			values[i] = 0
		}
	}
	return values
}

var errTaken = errors.New("the row is taken")

func (s *rawSession) Lock(ctx context.Context, key string) (Unlock, error) {
	holder := fmt.Sprintf("raw-%d-%d", os.Getpid(), s.last.Add(1)) // the statement would also succeed for the row's own holder
	if err := s.insert(ctx, key, holder); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := s.remove.ExecContext(ctx, s.remove.values(key, holder)...)
		return err
	}, nil
}

func (s *rawSession) insert(ctx context.Context, key, holder string) error {
	if !s.returning {
		_, err := s.acquire.ExecContext(ctx, s.acquire.values(key, holder)...)
		return err
	}
	var answer any
	err := s.acquire.QueryRowContext(ctx, s.acquire.values(key, holder)...).Scan(&answer)
	if errors.Is(err, sql.ErrNoRows) {
		return errTaken
	}
	return err
}
