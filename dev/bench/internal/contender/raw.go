package contender

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dialect"
)

// raw are the two statements alone, prepared: the texts of package dialect that acquire and
// release. This is the limit for any client that sends one statement for each step. In the
// second form, the callers of a key first wait for a mutex of the process, as those of
// go-dbmutex's MutexMap do.
func raw() []Contender {
	var all []Contender
	for _, d := range databases {
		alone := map[string]string{}
		for _, load := range []string{"hot key", "hand-off", "waiters"} {
			alone[load] = "bare statements cannot wait"
		}
		all = append(all,
			rawContender("raw statements", "prepared; no waiting, no lease, no retries", d, false, alone),
			rawContender("raw statements + mutex", "prepared; a mutex in front of each key", d, true, map[string]string{
				"hand-off": alone["hand-off"], "waiters": alone["waiters"],
				"pairs 1": sameAsRaw, "pairs 16": sameAsRaw, "pairs 64": sameAsRaw, "pairs 256": sameAsRaw,
				"delay 1": sameAsRaw, "delay 64": sameAsRaw, "wire": sameAsRaw,
			}))
	}
	return append(all, rawSerializable(postgresPQ), rawSerializable(postgresPGX))
}

// rawSerializable are the same statements on connections whose transactions are serializable, as
// those that Open acquires with: the limit for two serializable round trips.
func rawSerializable(d database) Contender {
	c := rawContender("raw statements, serializable", "prepared; each is a serializable transaction of its own", d, false, nil)
	c.Quick, c.Only = false, []string{"pairs 1", "delay 1"}
	open := c.Open
	c.Open = func(ctx context.Context, at Place) (Session, error) {
		at.DSN += "&default_transaction_isolation=serializable"
		return open(ctx, at)
	}
	return c
}

const sameAsRaw = "the same as without a mutex"

func rawContender(name, settings string, d database, queue bool, cannot map[string]string) Contender {
	return Contender{
		Name:     name + "/" + d.short,
		Library:  "the bare statements",
		Version:  "-",
		Database: d.kind,
		Settings: settings,
		Quick:    d.short != "pq",
		Cannot:   cannot,
		Prepare:  func(ctx context.Context, at Place) error { return d.with(ctx, at, d.migrate) },
		Open: func(ctx context.Context, at Place) (Session, error) {
			return openRaw(ctx, d, at, rawOptions{queue: queue})
		},
	}
}

// A prepared statement and the names of its parameters.
type prepared struct {
	*sql.Stmt
	names []any
}

type rawOptions struct {
	queue bool // for a mutex
	tell  bool // notify waiters of a release
}

type rawSession struct {
	pool
	rawOptions
	acquire, remove prepared
	returning       bool
	mutexes         sync.Map // key to *sync.Mutex
	last            atomic.Int64
}

func openRaw(ctx context.Context, d database, at Place, opts rawOptions) (*rawSession, error) {
	names, err := dialect.NamesFor("")
	if err != nil {
		return nil, err
	}
	if opts.tell {
		names.Channel = dialect.Channel
	}
	db, err := d.open(at)
	if err != nil {
		return nil, err
	}
	s := &rawSession{pool: pool{db}, rawOptions: opts, returning: d.kind != durable.MariaDB}
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
	free := s.turn(key)
	holder := fmt.Sprintf("raw-%d-%d", os.Getpid(), s.last.Add(1)) // the statement would also succeed for the row's own holder
	if err := s.insert(ctx, key, holder); err != nil {
		free()
		return nil, err
	}
	return func(ctx context.Context) error {
		defer free()
		_, err := s.remove.ExecContext(ctx, s.remove.values(key, holder)...)
		return err
	}, nil
}

func (s *rawSession) turn(key string) (free func()) {
	if !s.queue {
		return func() {}
	}
	mutex, _ := s.mutexes.LoadOrStore(key, new(sync.Mutex))
	mutex.(*sync.Mutex).Lock()
	return mutex.(*sync.Mutex).Unlock
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
