package servers_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/migrations"
)

// A watched server is one of our own, on which nothing else goes on.
type watched struct {
	start   func(context.Context, string) (*server.Server, error)
	driver  string
	dialect dialect.Dialect
	// writes is a query for what has been written so far, as names and numbers; looks one for the number of
	// statements.
	writes, looks string
}

var watchedServers = map[string]watched{
	"postgres": {
		server.StartPostgres, "postgres", dialect.Postgres(),
		`SELECT 'bytes of WAL', CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT)
		UNION ALL SELECT 'dead tuples', n_dead_tup FROM pg_stat_user_tables WHERE relname = 'int_lock'
		UNION ALL SELECT 'inserted', n_tup_ins FROM pg_stat_user_tables WHERE relname = 'int_lock'
		UNION ALL SELECT 'updated', n_tup_upd FROM pg_stat_user_tables WHERE relname = 'int_lock'
		UNION ALL SELECT 'deleted', n_tup_del FROM pg_stat_user_tables WHERE relname = 'int_lock'`,
		"SELECT 'transactions', xact_commit FROM pg_stat_database WHERE datname = current_database()",
	},
	"mysql": {
		server.StartMariaDB, "mysql", dialect.MySQL(),
		`SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_lsn_current', 'Handler_write',
		'Handler_update', 'Handler_delete', 'Innodb_row_lock_waits')`,
		"SHOW GLOBAL STATUS LIKE 'Com_select'",
	},
}

// TestQuiet_WaitingWritesNothing watches a server while ten processes wait for one lock and look at its row a
// thousand times: no log, no row version, no line in the server's log. It takes seconds, because it looks a thousand
// times and asks the server before and after that.
func TestQuiet_WaitingWritesNothing(t *testing.T) {
	t.Parallel()
	for name, w := range watchedServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := w.run(t)
			w.crowd(t, db, s.DSN())
			// The server itself writes to its log or WAL now and then.
			var grown map[string]int64
			for range 3 {
				if grown = w.watch(t, db, s.Log()); len(grown) == 0 {
					return
				}
			}
			t.Errorf("a thousand looks at a held lock wrote: %v", grown)
		})
	}
}

// run starts the server and migrates it.
func (w watched) run(t *testing.T) (*server.Server, *sqlx.DB) {
	t.Helper()
	dbtest.OwnServers(t)
	scratch := check.Value(server.NewScratch())(t)
	t.Cleanup(func() { must(t, scratch.Remove()) })
	s, err := w.start(t.Context(), filepath.Join(scratch.Dir, "watched"))
	if errors.Is(err, server.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	db := check.Value(sqlx.Connect(w.driver, s.DSN()))(t)
	t.Cleanup(func() { must(t, db.Close()) })
	must(t, migrations.Up(t.Context(), db.DB, w.dialect, nil))
	return s, db
}

// crowd has ten processes wait until the test ends, and returns when each of them has made its one attempt, which
// does write, and has begun to look.
func (w watched) crowd(t *testing.T, db *sqlx.DB, dsn string) {
	t.Helper()
	holder := check.Value(sqllock.NewRepository(unhurried(t), db.DB, w.dialect, nil))(t)
	must(t, check.ErrorOf(holder.Acquire(t.Context(), "k", holder.NewHolder(), time.Hour)))
	ctx, cancel := context.WithCancel(t.Context())
	var waiting, looking sync.WaitGroup
	for range 10 {
		connector := flaky.New(db.Driver(), dsn)
		pool := sqlx.NewDb(sql.OpenDB(connector), w.driver)
		t.Cleanup(func() { _ = pool.Close() }) // a cancelled connection of lib/pq is closed already
		repository := check.Value(sqllock.NewRepository(unhurried(t), pool.DB, w.dialect, nil))(t)
		registry := newRegistry(t, repository, &sqllock.RegistryOptions{
			NoRenew: true, TTL: ttl, IdleBetweenTries: 2 * time.Millisecond, DisableNames: true, ReportWaitAfter: never,
		})
		lock := obtain(t, registry, "k")
		looking.Add(1)
		connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.N == 10 && !m.Done {
				looking.Done()
			}
			return nil
		})
		waiting.Go(func() { _, _ = lock.Lock(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		waiting.Wait()
	})
	looking.Wait()
}

// watch returns what has grown while the waiters looked a thousand times.
func (w watched) watch(t *testing.T, db *sqlx.DB, log string) map[string]int64 {
	t.Helper()
	from, before, logged := total(numbers(t, db, w.looks)), numbers(t, db, w.writes), size(t, log)
	for own, others := int64(1), int64(0); others < 1000; own++ {
		others = total(numbers(t, db, w.looks)) - from - own
	}
	after := numbers(t, db, w.writes)
	after["bytes of the server's log"] = size(t, log) - logged
	for what := range before {
		after[what] -= before[what]
	}
	maps.DeleteFunc(after, func(_ string, n int64) bool { return n == 0 })
	return after
}

func numbers(t *testing.T, db *sqlx.DB, query string) map[string]int64 {
	t.Helper()
	rows := check.Value(db.QueryxContext(t.Context(), query))(t)
	defer rows.Close()
	all := make(map[string]int64)
	for rows.Next() {
		var name string
		var n int64
		must(t, rows.Scan(&name, &n))
		all[name] = n
	}
	must(t, rows.Err())
	return all
}

func total(all map[string]int64) (n int64) {
	for _, each := range all {
		n += each
	}
	return n
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	return check.Value(os.Stat(path))(t).Size()
}
