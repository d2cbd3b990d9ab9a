package contender

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// raw are the two statements alone, prepared: the texts of package dialect that acquire and
// release. This is the limit for any client that sends one statement for each step.
func raw() []Contender {
	var all []Contender
	for _, d := range []database{postgresPGX, mariaDB, sqlite} {
		all = append(all, rawContender("raw statements", "prepared; no waiting, no lease, no retries", d))
	}
	for _, d := range []database{postgresPQ, oracleMySQL} {
		c := rawContender("raw statements", "prepared; no waiting, no lease, no retries", d)
		c.Quick, c.Loads = false, []string{"pairs 1"}
		all = append(all, c)
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
	names, err := sqltext.NamesFor("")
	if err != nil {
		return nil, err
	}
	names.Channel = channel
	db, err := d.open(at)
	if err != nil {
		return nil, err
	}
	s := &rawSession{pool: pool{db}, returning: d.driver != "mysql"}
	texts := sqltext.Of(d.dialect()).Statements(dialect.Spring7, names)
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

// rawNotify is a minimal implementation of waiting for a row: try, wait for a notification, try again.
// This is the limit for handing a lock to another process.
func rawNotify() Contender {
	c := rawContender("raw statements, notify", "prepared; a caller that finds the row taken waits for NOTIFY and retries; no lease, no retries", postgresPGX)
	c.Loads = []string{"hand-off"}
	c.Open = func(ctx context.Context, at Place) (Session, error) {
		raw, err := openRaw(ctx, postgresPGX, at, dialect.Channel)
		if err != nil {
			return nil, err
		}
		s := &waitingSession{rawSession: raw}
		if s.listener, err = pgx.Connect(ctx, at.DSN); err == nil {
			_, err = s.listener.Exec(ctx, "LISTEN "+dialect.Channel)
		}
		if err != nil {
			return nil, errors.Join(err, s.Close()) //nolint:contextcheck // ctx may have ended
		}
		return s, nil
	}
	return c
}

// A waitingSession has one caller at a time.
type waitingSession struct {
	*rawSession
	listener *pgx.Conn // nil if it could not be opened
	held     Unlock    // nil if no row is held
}

// Lock tries until it has acquired the row.
func (s *waitingSession) Lock(ctx context.Context, key string) (Unlock, error) {
	for {
		unlock, err := s.rawSession.Lock(ctx, key)
		if err == nil {
			s.held = unlock
			return s.unlock, nil
		}
		if errors.Is(err, errTaken) {
			_, err = s.listener.WaitForNotification(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *waitingSession) unlock(ctx context.Context) error {
	unlock := s.held
	s.held = nil
	return unlock(ctx)
}

// Connections are those of the pool and of the listener.
func (s *waitingSession) Connections() int { return s.rawSession.Connections() + 1 }

// Close releases the row, since it has no lease that would expire soon.
func (s *waitingSession) Close() (err error) {
	ctx := context.Background()
	if s.held != nil {
		err = s.unlock(ctx)
	}
	if s.listener != nil {
		err = errors.Join(err, s.listener.Close(ctx))
	}
	return errors.Join(err, s.rawSession.Close())
}
