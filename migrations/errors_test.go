package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/migrations"
)

func TestInvalidInput(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	for _, test := range []struct {
		name    string
		dialect dialect.Dialect
		opts    migrations.Options
		want    error
		text    string
	}{
		{"no dialect", dialect.Dialect{}, migrations.Options{}, migrations.ErrDialect, `""`},
		{"prefix", db.Dialect, migrations.Options{Prefix: "INT-"}, dialect.ErrPrefix, `"INT-"`},
		{"injection", db.Dialect, migrations.Options{Prefix: "x; DROP TABLE y; --"}, dialect.ErrPrefix, ""},
		{"layout", db.Dialect, migrations.Options{Layout: 7}, migrations.ErrOption, "7"},
		{"TTL", db.Dialect, migrations.Options{TTL: -time.Second}, migrations.ErrOption, "-1s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			_, err := migrations.Status(ctx, db.DB.DB, test.dialect, &test.opts)
			for _, err := range []error{
				err,
				migrations.Up(ctx, db.DB.DB, test.dialect, &test.opts),
				migrations.Down(ctx, db.DB.DB, test.dialect, &test.opts),
				migrations.Goto(ctx, db.DB.DB, test.dialect, 0, &test.opts),
			} {
				wantErr(t, err, test.want, test.text)
			}
		})
	}
	wantErr(t, migrations.Up(t.Context(), nil, db.Dialect, nil), migrations.ErrOption, "database")
	wantErr(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 5, nil), migrations.ErrVersion, "5", "the last one is 4")
}

func TestSchemaMustExist(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		opts := &migrations.Options{Prefix: "nowhere_to_be_found.INT_"}
		err := migrations.Up(t.Context(), db.DB.DB, db.Dialect, opts)
		if err == nil {
			t.Fatal("no error")
		}
		if db.Name == "sqlite" {
			return // there, Status fails too if the schema is missing
		}
		if st := status(t, db, opts); st.Version != 0 || st.Layout != 0 {
			t.Errorf("state %+v", st)
		}
	})
}

func TestUnusableState(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, statement string
		version         uint // that Status returns
		text            string
	}{
		{"dirty", "UPDATE INT_LOCK_MIGRATIONS SET dirty = TRUE", 4, "drop INT_LOCK_MIGRATIONS"},
		// golang-migrate's own drivers leave that version if the first step fails.
		{"dirty, no version", "UPDATE INT_LOCK_MIGRATIONS SET version = -1, dirty = TRUE", 0, "drop INT_LOCK_MIGRATIONS"},
		{"newer", "UPDATE INT_LOCK_MIGRATIONS SET version = 5", 5, "has version 5, but this version of sqllock knows only 4"},
		{"no table", "DROP TABLE INT_LOCK", 4, "there is no table INT_LOCK: drop INT_LOCK_MIGRATIONS"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
				up(t, db, nil)
				run(t, db, test.statement)
				for range 2 { // an error has no effect on the tables
					wantErr(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil), migrations.ErrState, test.text)
					wantErr(t, migrations.Down(t.Context(), db.DB.DB, db.Dialect, nil), migrations.ErrState, test.text)
				}
				if st := status(t, db, nil); st.Dirty != strings.HasPrefix(test.name, "dirty") || st.Version != test.version {
					t.Errorf("state %+v", st)
				}
				if test.name == "newer" {
					return
				}
				run(t, db, "DROP TABLE INT_LOCK_MIGRATIONS") // as the error message advises
				up(t, db, nil)
				wantAt(t, db, 4, dialect.Spring7)
			})
		})
	}
}

// TestDownInterrupted starts from the state that MySQL has if the connection breaks in the
// middle.
func TestDownInterrupted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		for _, interrupted := range []string{"RENAME COLUMN EXPIRED_AFTER TO LEASE_END", "DROP COLUMN EXPIRED_AFTER"} {
			if db.Name != "mysql" && strings.HasPrefix(interrupted, "RENAME") {
				continue
			}
			must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 3, nil))
			run(t, db, "ALTER TABLE INT_LOCK "+interrupted)
			wantErr(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil), migrations.ErrState, "go to version 2, then to 4")
			must(t, migrations.Down(t.Context(), db.DB.DB, db.Dialect, nil))
			wantAt(t, db, 2, dialect.Spring6)
			must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 4, nil))
			wantAt(t, db, 4, dialect.Spring7)
			check.Equal(t, "columns", columns(t, db, "INT_LOCK"), five)
			must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 2, nil))
		}
	})
}

// TestDownInterrupted_AfterEachStatement has the way down fail after each of its statements, as MySQL has if the connection
// breaks there. Both directions go on from there, if need be by what the error advises, and nothing is missing in the end.
func TestDownInterrupted_AfterEachStatement(t *testing.T) {
	t.Parallel()
	dbtest.Databases{"mysql": dbtest.MySQL}.Each(t, func(t *testing.T, db *dbtest.DB) {
		connector := flaky.New(db.DB.Driver(), db.DSN)
		pool := sql.OpenDB(connector)
		t.Cleanup(func() { must(t, pool.Close()) })
		to := func(version uint) error { return migrations.Goto(t.Context(), db.DB.DB, db.Dialect, version, nil) }
		broken := errors.New("broken")
		must(t, to(4))
		all := tables(t, db)
		for n := 1; ; n++ {
			for _, way := range []struct{ from, target uint }{{2, 0}, {4, 4}, {4, 0}} {
				target := way.target
				must(t, to(0))
				must(t, to(way.from))
				sent := 0
				connector.Follow(func(_ context.Context, m flaky.Moment) error {
					if m.Op != flaky.Exec || !m.Done {
						return nil
					}
					if sent++; sent != n {
						return nil
					}
					return broken
				})
				err := migrations.Goto(t.Context(), pool, db.Dialect, 0, nil)
				if sent < n {
					must(t, err)
					if way.from == 4 { // all statements
						return
					}
					continue
				}
				if err != nil && !errors.Is(err, broken) { // some settings, and the goodbye, may fail
					t.Fatal(err)
				}
				switch err := to(target); {
				case err == nil:
				case strings.Contains(err.Error(), "go to version 2, then to 4"):
					must(t, to(2))
				case target == 4 && strings.Contains(err.Error(), "drop INT_LOCK_MIGRATIONS"):
					run(t, db, "DROP TABLE INT_LOCK_MIGRATIONS")
				default:
					t.Fatal(n, err)
				}
				must(t, to(target))
				if got := tables(t, db); target == 0 && len(got) > 0 || target == 4 && !slices.Equal(got, all) {
					t.Errorf("after statement %d and to version %d: %v", n, target, got)
				}
			}
		}
	})
}

// TestUpInterrupted starts from each state that MySQL has if the connection breaks while Up makes new
// tables. They have EXPIRED_AFTER in the end, as if nothing had happened.
func TestUpInterrupted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		for version := range uint(4) {
			must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, max(version, 1), nil))
			run(t, db, "UPDATE INT_LOCK_MIGRATIONS SET version = -1")
			if version == 0 {
				run(t, db, "DROP TABLE INT_LOCK")
			}
			up(t, db, nil)
			wantAt(t, db, 4, dialect.Spring7)
			must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 0, nil))
		}
	})
}

// TestAllOrNothing lets a migration fail in the middle: a view needs the column.
func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	dbtest.Databases{"postgres": dbtest.Postgres, "sqlite": dbtest.SQLite}.Each(t, func(t *testing.T, db *dbtest.DB) {
		up(t, db, nil)
		run(t, db, insert5, "CREATE VIEW ends AS SELECT EXPIRED_AFTER FROM INT_LOCK")
		before := rows(t, db, dialect.Spring7)
		if err := migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 0, nil); err == nil || !strings.Contains(err.Error(), "DROP COLUMN") {
			t.Errorf("error %v", err)
		}
		wantAt(t, db, 4, dialect.Spring7)
		same(t, "rows", before, rows(t, db, dialect.Spring7))
	})
}

func TestForeignBookkeeping(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		run(t, db, "CREATE TABLE INT_LOCK_MIGRATIONS (something INT)")
		err := migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil)
		if err == nil || sqltext.Of(db.Dialect).Classify(err) != sqltext.Schema {
			t.Errorf("error %v", err)
		}
	})
}

func TestHeldLocksKeepTheTable(t *testing.T) {
	t.Parallel()
	for _, layout := range []dialect.Layout{dialect.Spring6, dialect.Spring7} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
				opts := &migrations.Options{Layout: layout, TTL: time.Hour}
				up(t, db, opts)
				acquire(t, db.DB, db.Dialect, layout)
				drop := func() error { return migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 0, opts) }
				wantErr(t, drop(), migrations.ErrHeld, "1 in total", "a-key in region DEFAULT", "held by a-token for another ", "Force drops the table anyway")
				check.Equal(t, "rows", len(rows(t, db, layout)), 1)
				must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 1, opts))
				wantErr(t, migrations.Down(t.Context(), db.DB.DB, db.Dialect, opts), migrations.ErrHeld)
				opts.Force = true
				must(t, drop())
				wantAt(t, db, 0, 0)
			})
		})
	}
}

// TestHeldLocksKeepTheLayout asks for EXPIRED_AFTER while a process that was opened without it may renew its lease.
// A lock that stays for a minimum hold has no such process, and stays for as long as before.
func TestHeldLocksKeepTheLayout(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		opts := &migrations.Options{Layout: dialect.Spring6, TTL: time.Hour}
		up(t, db, opts)
		acquire(t, db.DB, db.Dialect, dialect.Spring6)
		opts.Layout = dialect.Spring7
		wantErr(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, opts), migrations.ErrHeld, "1 in total", "a-key in region DEFAULT", "stop all programs", "Force adds EXPIRED_AFTER anyway")
		wantAt(t, db, 2, dialect.Spring6)
		future := map[string]string{
			"postgres": "(clock_timestamp() AT TIME ZONE 'UTC') + INTERVAL '2 hours'", "mysql": "UTC_TIMESTAMP(6) + INTERVAL 2 HOUR", "sqlite": "datetime('now', 'subsec', '+2 hours')",
		}[db.Name]
		run(t, db, "UPDATE INT_LOCK SET CLIENT_ID = 'a-client-k0123456789', CREATED_DATE = "+future)
		up(t, db, opts)
		wantAt(t, db, 4, dialect.Spring7)
		if got := left(t, db, "INT_LOCK"); len(got) != 1 || got[0] < 2*time.Hour || got[0] > 3*time.Hour {
			t.Errorf("time left %v", got)
		}
		must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 2, opts))
		run(t, db, "DELETE FROM INT_LOCK")
		acquire(t, db.DB, db.Dialect, dialect.Spring6)
		opts.Force = true
		up(t, db, opts)
		wantAt(t, db, 4, dialect.Spring7)
	})
}

func TestCancelledContext(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantErr(t, migrations.Up(ctx, db.DB.DB, db.Dialect, nil), context.Canceled)
		wantErr(t, check.ErrorOf(migrations.Status(ctx, db.DB.DB, db.Dialect, nil)), context.Canceled)
		up(t, db, nil)
		wantAt(t, db, 4, dialect.Spring7)
	})
}

// TestBlockedByReader opens a transaction that has read the table. It blocks ALTER TABLE
// on PostgreSQL and MySQL.
// It takes seconds: one migration is given up after a second, another by the server.
func TestBlockedByReader(t *testing.T) {
	t.Parallel()
	dbtest.Databases{"postgres": dbtest.Postgres, "mysql": dbtest.MySQL}.Each(t, func(t *testing.T, db *dbtest.DB) {
		spring(t, db, dialect.Spring6)
		run(t, db, insert4)
		before := rows(t, db, dialect.Spring6)
		reader := check.Value(db.DB.BeginTx(t.Context(), nil))(t)
		defer reader.Rollback()
		var n int
		must(t, reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM INT_LOCK").Scan(&n))

		// real time: a transaction is in the way until after the limit, however late that is
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		spring7 := &migrations.Options{Layout: dialect.Spring7}
		wantErr(t, migrations.Up(ctx, db.DB.DB, db.Dialect, spring7), context.DeadlineExceeded)
		wantErr(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, spring7), migrations.ErrBusy)
		version := map[string]uint{"postgres": 0, "mysql": 2}[db.Name]
		wantAt(t, db, version, dialect.Spring6)
		same(t, "rows", before, rows(t, db, dialect.Spring6))
		must(t, reader.Rollback())
		up(t, db, spring7)
		wantAt(t, db, 4, dialect.Spring7)
	})
}

// TestWaitsForWriter migrates while SQLite has another writer, and without busy_timeout.
func TestWaitsForWriter(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	pool := check.Value(sql.Open(db.Driver, withoutBusyTimeout(db)))(t)
	t.Cleanup(func() { must(t, pool.Close()) })
	waitsFor(t, db, pool, "BEGIN IMMEDIATE")
}

// TestWaitsForWriter_WithoutWAL migrates while another writer keeps readers out, as it does for the length of a COMMIT.
func TestWaitsForWriter_WithoutWAL(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	must(t, db.DB.Close())
	file, _, _ := strings.Cut(db.DSN, "?")
	db.DB = sqlx.MustOpen(db.Driver, file)
	t.Cleanup(func() { must(t, db.DB.Close()) })
	must(t, check.ErrorOf(db.DB.ExecContext(t.Context(), "PRAGMA journal_mode = DELETE")))
	waitsFor(t, db, db.DB.DB, "BEGIN EXCLUSIVE")
}

// waitsFor has Up wait for a transaction that begins so.
func waitsFor(t *testing.T, db *dbtest.DB, pool *sql.DB, begin string) {
	t.Helper()
	writer := check.Value(pool.Conn(t.Context()))(t)
	must(t, check.ErrorOf(writer.ExecContext(t.Context(), begin)))
	must(t, check.ErrorOf(writer.ExecContext(t.Context(), "CREATE TABLE t (x)")))

	// real time: a transaction is in the way until after the limit, however late that is
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	wantErr(t, migrations.Up(ctx, pool, db.Dialect, nil), context.DeadlineExceeded)
	done := check.Begin(func() error { return migrations.Up(t.Context(), pool, db.Dialect, nil) })
	must(t, check.ErrorOf(writer.ExecContext(t.Context(), "COMMIT")))
	must(t, writer.Close())
	must(t, <-done)
	wantAt(t, db, 4, dialect.Spring7)
}
