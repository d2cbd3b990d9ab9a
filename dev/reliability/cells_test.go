//go:build linux

package reliability

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/migrations"
)

var must = check.Must

// A cell is a database and a driver.
type cell struct {
	name   string
	driver string
	kind   string
	make   func(testing.TB) *dbtest.DB
	// durable starts a server that the test may kill.
	durable func(context.Context, string) (*server.Server, error)
	// pair starts a server with a synchronous replica, which promote makes a primary.
	pair    func(context.Context, string) (primary, replica *server.Server, err error)
	promote func(*server.Server, context.Context) error
	dialect func() dialect.Dialect
}

var servers = []cell{
	{"PostgreSQL, lib/pq", "postgres", server.Postgres, dbtest.Postgres, server.StartDurablePostgres, server.StartPostgresPair, (*server.Server).Promote, dialect.Postgres},
	{"PostgreSQL, pgx", "pgx", server.Postgres, dbtest.Postgres, server.StartDurablePostgres, server.StartPostgresPair, (*server.Server).Promote, dialect.Postgres},
	{"MariaDB", "mysql", server.MySQL, dbtest.MySQL, server.StartDurableMariaDB, server.StartMariaDBPair, (*server.Server).PromoteMariaDB, dialect.MySQL},
}

var sqlite = cell{"SQLite", "sqlite", server.SQLite, dbtest.SQLite, nil, nil, nil, dialect.SQLite}

// each runs the test on each cell. The cells run in parallel, unless the figures are for the
// page.
func each(t *testing.T, cells []cell, test func(t *testing.T, place int, c cell)) {
	t.Helper()
	for place, c := range cells {
		t.Run(c.name, func(t *testing.T) {
			inParallel(t)
			test(t, place, c)
		})
	}
}

func inParallel(t *testing.T) {
	t.Helper()
	if !*full {
		t.Parallel()
	}
}

// A base is a migrated database.
type base struct {
	cell
	dsn string
	db  *sqlx.DB // a direct connection with the cell's driver
}

// newBase returns an empty database for the test.
func (c cell) newBase(t *testing.T) *base {
	t.Helper()
	db := c.make(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, c.dialect(), nil))
	return &base{c, db.DSN, open(t, c.driver, db.DSN, 0)}
}

// newServer starts a durable server for the test. A server that loses its last commits in a
// crash would release locks too early.
func (c cell) newServer(t *testing.T) (*base, *server.Server) {
	t.Helper()
	s, err := c.durable(t.Context(), filepath.Join(scratch(t), "server"))
	started(t, err, s)
	return c.migrated(t, s.DSN()), s
}

// migrated returns the base on a server that was started for the test.
func (c cell) migrated(t *testing.T, dsn string) *base {
	t.Helper()
	b := &base{c, dsn, open(t, c.driver, dsn, 20)}
	must(t, migrations.Up(t.Context(), b.db.DB, c.dialect(), nil))
	return b
}

func scratch(t *testing.T) string {
	t.Helper()
	s := check.Value(server.NewScratch())(t)
	t.Cleanup(func() { must(t, s.Remove()) })
	return s.Dir
}

// started stops the servers when the test ends. It skips the test if there is no such server.
func started(t *testing.T, err error, all ...*server.Server) {
	t.Helper()
	if (errors.Is(err, server.ErrMissing) || errors.Is(err, errors.ErrUnsupported)) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	must(t, err)
	for _, s := range all {
		t.Cleanup(func() { _ = s.Kill() })
	}
}

// open returns a pool of limited size, which is closed when the test ends.
func open(t *testing.T, driver, dsn string, most int) *sqlx.DB {
	t.Helper()
	db := check.Value(sqlx.Open(driver, dsn))(t)
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(max(most, 8))
	t.Cleanup(func() { _ = db.Close() }) // its connections may be broken
	return db
}

func (b *base) repository(t *testing.T, db *sqlx.DB) *sqllock.Repository {
	t.Helper()
	for limit := time.Now().Add(promptly); ; {
		r, err := sqllock.NewRepository(t.Context(), db.DB, b.dialect(), nil)
		if noAnswer(err) && time.Now().Before(limit) {
			continue // on a machine that stands still
		}
		must(t, err)
		return r
	}
}

// registry returns a registry on db, which is closed when the test ends.
func (b *base) registry(t *testing.T, db *sqlx.DB, opts sqllock.RegistryOptions) *sqllock.Registry {
	t.Helper()
	r := check.Value(sqllock.NewRegistry(b.repository(t, db), &opts))(t)
	t.Cleanup(func() {
		// real time: the rows of lost leases may be out of reach: what Close returns is no verdict.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = r.Close(ctx) // the rows of lost leases may be deleted or unreachable
	})
	return r
}

// locked returns the lease of a lock that nobody else holds.
func locked(t *testing.T, lock *sqllock.JdbcLock) *sqllock.Lease {
	t.Helper()
	for limit := time.Now().Add(promptly); ; {
		lease, err := lock.Lock(t.Context())
		if noAnswer(err) && time.Now().Before(limit) {
			continue
		}
		must(t, err)
		return lease
	}
}

func obtain(t *testing.T, r *sqllock.Registry, key string) *sqllock.JdbcLock {
	t.Helper()
	return check.Value(r.Obtain(key))(t)
}

// pause waits; the time is part of the trial.
var pause = bounded.Sleep

func lost(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, sqllock.ErrLockLost) {
		t.Errorf("%s: %v, want ErrLockLost", what, err)
	}
}
