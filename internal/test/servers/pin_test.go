package servers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/observe"
)

// A transaction that a program has left open has the row of a lock locked, whose lease is over. The caller that
// tries learns which session that is, and for how long it has been open, whatever the zone of his own session.
// MariaDB knows it only while another transaction waits for the row, MySQL with its performance_schema.
func TestPinnedRowIsExplained(t *testing.T) {
	t.Parallel()
	sqllockCommand := sync.OnceValue(func() command { return buildCommand(t) }) // none without a server
	databases{
		"PostgreSQL": dbtest.Postgres, "the newest PostgreSQL": dbtest.PostgresNewest, "MariaDB": dbtest.MySQL,
		"MySQL": dbtest.OracleMySQL, "MySQL with its performance_schema": tellingMySQL,
	}.migrated(t, func(t *testing.T, db *dbtest.DB) {
		patient := db.DB
		if db.Name == "mysql" { // MySQL would wait for 50 s
			db.DB = db.OpenDSN(t, db.Driver, db.With(t, map[string]string{"innodb_lock_wait_timeout": "1", "time_zone": "'+05:30'"}))
		}
		session := map[string]string{"postgres": "SELECT pg_backend_pid()", "mysql": "SELECT CONNECTION_ID()"}[db.Name]
		must(t, check.ErrorOf(newRegistry(t, repository(t, db, nil), nil).TryLock(t.Context(), "k")))
		must(t, check.ErrorOf(db.DB.ExecContext(t.Context(), "UPDATE INT_LOCK SET EXPIRED_AFTER = '2026-01-31 12:00:00.123'")))
		tx := check.Value(db.DB.BeginTxx(t.Context(), nil))(t)
		must(t, check.ErrorOf(tx.ExecContext(t.Context(), "SELECT * FROM INT_LOCK FOR UPDATE")))
		var number int64
		must(t, tx.GetContext(t.Context(), &number, session))

		rival := repository(t, db, nil)
		mayBeUnknown := false
		if db.Name == "mysql" {
			must(t, db.DB.GetContext(t.Context(), &mayBeUnknown, "SELECT @@performance_schema = 0 AND VERSION() NOT LIKE '%MariaDB%'"))
		}
		queued := check.Begin(func() error {
			return check.ErrorOf(patient.ExecContext(t.Context(), "SELECT * FROM INT_LOCK FOR UPDATE"))
		})
		awaitPin(t, rival, "k", !mayBeUnknown)
		_, err := newRegistry(t, rival, &sqllock.RegistryOptions{NoRenew: true}).TryLock(t.Context(), "k")
		var held *sqllock.HeldError
		if !errors.As(err, &held) || !strings.Contains(err.Error(), "its lease is over") {
			t.Fatalf("error %v", err)
		}
		pin, _ := rival.Pin(t.Context(), "k")
		for _, pin := range []sqllock.Pin{pin, held.Pinned} {
			if !strings.HasPrefix(pin.Session, fmt.Sprintf("session %d (", number)) && (pin != sqllock.Pin{} || !mayBeUnknown) {
				t.Errorf("%v, want session %d", pin, number)
			}
			if pin.Since < 0 || pin.Since > time.Hour {
				t.Errorf("open for %v", pin.Since)
			}
		}
		waits := make(chan observe.Wait, 100)
		waiting := newRegistry(t, rival, &sqllock.RegistryOptions{ReportWaitAfter: 10 * time.Millisecond, Observers: []*observe.Observer{{
			Waiting: func(_ context.Context, e observe.Wait) { waits <- e },
		}}, NoRenew: true})
		waited := check.Begin(func() error {
			lease, err := waiting.Lock(t.Context(), "k")
			return errors.Join(err, lease.Unlock(t.Context()))
		})
		pinnedBy := fmt.Sprintf("its row is pinned by session %d (", number)
		if mayBeUnknown {
			pinnedBy = "a transaction may have the row locked"
		}
		for e := range waits { // the first may come before the first attempt is over, or the server be slow to say who it is
			if e.Err != nil && strings.Contains(e.Err.Error(), pinnedBy) {
				check.Equal(t, "holder", e.Holder, held.Holder)
				break
			}
		}
		if !mayBeUnknown {
			awaitPinInList(t, sqllockCommand(), db.DSN, fmt.Sprintf("session %d (", number))
		}
		must(t, tx.Rollback())
		must(t, <-queued)
		must(t, <-waited)
		awaitPin(t, rival, "k", false)
		must(t, check.Value(newRegistry(t, rival, &sqllock.RegistryOptions{NoRenew: true}).TryLock(t.Context(), "k"))(t).Unlock(t.Context()))
		if db.Name == "mysql" && !mayBeUnknown {
			pinnedByItsKey(t, db, patient)
		}
	})
}

// pinnedByItsKey is about tables with several keys: the row that a transaction has locked is found by that, and is
// not taken for another one, whose key goes on otherwise after a space, is the name of the region, or is the region of
// the row whose region it is.
func pinnedByItsKey(t *testing.T, db *dbtest.DB, patient *sqlx.DB) {
	t.Helper()
	for _, change := range []struct{ key, table string }{
		{"PRIMARY", "DROP PRIMARY KEY, ADD PRIMARY KEY (LOCK_KEY, REGION)"},
		{"PRIMARY", "DROP PRIMARY KEY, ADD PRIMARY KEY (REGION, LOCK_KEY)"},
		{"K", "DROP PRIMARY KEY, ADD ID BIGINT AUTO_INCREMENT PRIMARY KEY, ADD UNIQUE K (LOCK_KEY, REGION)"},
		{"K", "DROP KEY K, ADD UNIQUE K (REGION, LOCK_KEY)"},
	} {
		db.DB.MustExecContext(t.Context(), "ALTER TABLE INT_LOCK "+change.table)
		repositories := make(map[string]*sqllock.Repository)
		var leases []*sqllock.Lease
		rows := []struct{ region, key string }{{"here", "k"}, {"here", "k 2"}, {"here", "here"}, {"k 2", "here"}}
		for _, row := range rows {
			if repositories[row.region] == nil {
				repositories[row.region] = repository(t, db, &sqllock.RepositoryOptions{Keys: sqllock.PlainKeys, Region: row.region})
			}
			leases = append(leases, check.Value(newRegistry(t, repositories[row.region], &sqllock.RegistryOptions{NoRenew: true}).TryLock(t.Context(), row.key))(t))
		}
		lock := "SELECT * FROM INT_LOCK FORCE INDEX (" + change.key + ") WHERE LOCK_KEY = 'k 2' AND REGION = 'here' FOR UPDATE"
		tx := check.Value(db.DB.BeginTxx(t.Context(), nil))(t)
		must(t, check.ErrorOf(tx.ExecContext(t.Context(), lock)))
		var number int64
		must(t, tx.GetContext(t.Context(), &number, "SELECT CONNECTION_ID()"))
		queued := check.Begin(func() error { return check.ErrorOf(patient.ExecContext(t.Context(), lock)) }) // MariaDB knows no lock that nobody waits for
		if pin := awaitPin(t, repositories["here"], "k 2", true); !strings.HasPrefix(pin.Session, fmt.Sprintf("session %d (", number)) {
			t.Errorf("%s: %v, want session %d", change.table, pin, number)
		}
		for _, row := range rows {
			if row.region == "here" && row.key == "k 2" {
				continue
			}
			if pin, ok := repositories[row.region].Pin(t.Context(), row.key); ok {
				t.Errorf("%s: %v of %q in %q", change.table, pin, row.key, row.region)
			}
		}
		must(t, tx.Rollback())
		must(t, <-queued)
		awaitPin(t, repositories["here"], "k 2", false)
		for _, lease := range leases {
			must(t, lease.Unlock(t.Context()))
		}
	}
}

// awaitPin waits until the row of key has a pin, which it returns, or has none. MariaDB shows what was so the last
// time that anyone asked, if that is less than 0.1 s ago.
func awaitPin(t *testing.T, r *sqllock.Repository, key string, want bool) sqllock.Pin {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(150 * time.Millisecond) {
		pin, ok := r.Pin(t.Context(), key)
		if ok == want {
			return pin
		}
		if time.Now().After(limit) {
			t.Fatalf("pin %v, want one: %v", pin, want)
		}
	}
}

// awaitPinInList waits until `sqllock list` says which session has a row locked. It leaves out one of a moment,
// which may be that of a process that tries to acquire, and does not wait for a slow server.
func awaitPinInList(t *testing.T, c command, dsn, session string) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(150 * time.Millisecond) {
		var rows []struct{ Pinned *struct{ Session string } }
		out, _ := c.run(t, "list", "--json", "--dsn", dsn)
		must(t, json.Unmarshal([]byte(out), &rows))
		if len(rows) == 1 && rows[0].Pinned != nil && strings.HasPrefix(rows[0].Pinned.Session, session) {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("list does not name %s: %s", session, out)
		}
	}
}

// tellingMySQL is a database on a server of the test's own, which has the
// performance_schema. Those of all tests do without it.
func tellingMySQL(tb testing.TB) *dbtest.DB {
	tb.Helper()
	dbtest.OwnServers(tb)
	scratch := check.Value(server.NewScratch())(tb)
	tb.Cleanup(func() { check.Must(tb, scratch.Remove()) })
	recipe, err := server.DurableOracleMySQL(tb.Context())
	if errors.Is(err, server.ErrMissing) && os.Getenv("CI") != "true" {
		tb.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	check.Must(tb, err)
	s := check.Value(server.Start(tb.Context(), recipe.With("--performance-schema=ON"), filepath.Join(scratch.Dir, "telling")))(tb)
	tb.Cleanup(func() { check.Must(tb, s.Kill()) })
	db := &dbtest.DB{Name: "mysql", Server: server.OracleMySQL, Driver: "mysql", DSN: s.DSN(), Dialect: dialect.MySQL()}
	db.DB = db.Open(tb)
	return db
}
