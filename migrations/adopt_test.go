package migrations_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

const (
	insert4 = "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE)" +
		" VALUES ('0cc175b9-c0f1-36a8-b1c3-99e269772661', 'DEFAULT', 'a-client', '2026-01-31 12:00:00.123')"
	insert5 = "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)" +
		" VALUES ('a', 'DEFAULT', NULL, '2026-01-31 12:00:00.123', '2026-01-31 12:00:10.123')"
)

// spring creates the table with the statement of Spring's own script.
func spring(t *testing.T, db *dbtest.DB, layout dialect.Layout) {
	t.Helper()
	date, tail := "TIMESTAMP", ""
	if db.Name == "mysql" {
		date, tail = "DATETIME(6)", " ENGINE=InnoDB"
	}
	expiredAfter := ""
	if layout == dialect.Spring7 {
		expiredAfter = "EXPIRED_AFTER " + date + " NOT NULL,"
	}
	run(t, db, "CREATE TABLE INT_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36),"+
		" CREATED_DATE "+date+" NOT NULL,"+expiredAfter+" constraint INT_LOCK_PK primary key (LOCK_KEY, REGION))"+tail)
}

func TestAdoptSpring7(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		spring(t, db, dialect.Spring7)
		run(t, db, insert5)
		before := rows(t, db, dialect.Spring7)
		wantAt(t, db, 0, dialect.Spring7)
		up(t, db, nil)
		wantAt(t, db, 4, dialect.Spring7)
		same(t, "rows", before, rows(t, db, dialect.Spring7))
		check.Equal(t, "columns", columns(t, db, "INT_LOCK"), five)
	})
}

// TestAdoptSpring6 migrates a table of Spring 6 with a row, whose lease lasts for Spring's time-to-live by default.
func TestAdoptSpring6(t *testing.T) {
	t.Parallel()
	for given, ttl := range map[time.Duration]time.Duration{0: migrations.DefaultTTL, time.Hour: time.Hour} {
		t.Run(ttl.String(), func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
				spring(t, db, dialect.Spring6)
				run(t, db, insert4)
				before := rows(t, db, dialect.Spring6)
				up(t, db, &migrations.Options{Layout: dialect.Spring6})
				same(t, "rows", before, rows(t, db, dialect.Spring6))
				start := time.Now()
				up(t, db, &migrations.Options{TTL: given, Layout: dialect.Spring7})
				took := time.Since(start) + time.Millisecond // the resolution of SQLite's clock
				after := rows(t, db, dialect.Spring7)
				for i := range after {
					after[i].Expires = ""
				}
				same(t, "rows", before, after)
				if got := left(t, db, "INT_LOCK"); len(got) != 1 || got[0] > ttl || got[0] < ttl-took-time.Minute {
					t.Errorf("time left %v", got)
				}
			})
		})
	}
}

// TestSpring6GoesOn migrates a table that a Spring 6 uses, without a layout. Its INSERT still succeeds,
// also after the next start of the program that migrates.
func TestSpring6GoesOn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		spring(t, db, dialect.Spring6)
		for range 2 {
			up(t, db, nil)
			wantAt(t, db, 2, dialect.Spring6)
			run(t, db, insert4, "DELETE FROM INT_LOCK")
		}
	})
}

// TestHalfUpgraded migrates a table to which the column was added without values, because
// Spring's own statement fails if there are rows; and again, after it may be NULL although
// the version is the latest.
func TestHalfUpgraded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		column := "EXPIRED_AFTER " + map[string]string{"postgres": "TIMESTAMP", "mysql": "DATETIME(6)", "sqlite": "TIMESTAMP"}[db.Name]
		spring(t, db, dialect.Spring6)
		run(t, db, insert4)
		run(t, db, "ALTER TABLE INT_LOCK ADD "+column)
		for range 2 {
			run(t, db, insert5)
			before := rows(t, db, dialect.Spring7)
			up(t, db, &migrations.Options{TTL: time.Hour})
			wantAt(t, db, 4, dialect.Spring7)
			after := rows(t, db, dialect.Spring7)
			if after[1] != before[1] || after[0].Expires == "" {
				t.Errorf("before %v, after %v", before, after)
			}
			run(t, db, "DELETE FROM INT_LOCK")
			if _, err := db.DB.ExecContext(t.Context(), insert4); err == nil {
				t.Error("EXPIRED_AFTER may still be null")
			}
			run(t, db, "ALTER TABLE INT_LOCK DROP COLUMN EXPIRED_AFTER", "ALTER TABLE INT_LOCK ADD "+column)
			run(t, db, insert4)
		}
		must(t, migrations.Down(t.Context(), db.DB.DB, db.Dialect, nil))
		if st := status(t, db, nil); st.Version != 3 || !st.Nullable {
			t.Errorf("state %+v", st)
		}
		must(t, migrations.Down(t.Context(), db.DB.DB, db.Dialect, nil)) // with a row that has no EXPIRED_AFTER
		wantAt(t, db, 2, dialect.Spring6)
	})
}

// TestZeroDates migrates rows that expired in the year 0, as Spring's own statement leaves
// them on MariaDB, and on MySQL without strict mode.
func TestZeroDates(t *testing.T) {
	t.Parallel()
	db := dbtest.MySQL(t)
	spring(t, db, dialect.Spring6)
	run(t, db, insert4)
	conn := check.Value(db.DB.Conn(t.Context()))(t)
	defer conn.Close()
	for _, statement := range []string{
		"SET SESSION sql_mode = ''",
		"ALTER TABLE INT_LOCK ADD EXPIRED_AFTER DATETIME(6) NOT NULL",
	} {
		must(t, check.ErrorOf(conn.ExecContext(t.Context(), statement)))
	}
	if got := rows(t, db, dialect.Spring7)[0].Expires; !strings.HasPrefix(got, "0000-00-00") {
		t.Fatalf("EXPIRED_AFTER %s", got)
	}
	up(t, db, &migrations.Options{TTL: time.Hour})
	if got := left(t, db, "INT_LOCK"); len(got) != 1 || got[0] > time.Hour || got[0] < time.Hour-time.Minute {
		t.Errorf("time left %v", got)
	}
}

// TestDownKeepsLeases migrates to version 2. From then on, contenders with the same
// time-to-live derive the end of a lease from CREATED_DATE.
func TestDownKeepsLeases(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		up(t, db, nil)
		run(t, db, insert5)
		// real time: a number to compute with: nothing waits
		must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 2, &migrations.Options{TTL: 4 * time.Second}))
		const want = "2026-01-31 12:00:06.123" // EXPIRED_AFTER is 10.123
		if got := rows(t, db, dialect.Spring6); len(got) != 1 || got[0].Created[:len(want)] != want {
			t.Errorf("rows %v", got)
		}
	})
}
