package migrations_test

import (
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

const (
	four = "LOCK_KEY REGION CLIENT_ID CREATED_DATE"
	five = four + " EXPIRED_AFTER"
)

// TestUpAndDownStepByStep has a row, which a second Up leaves as it is. It has expired, so it does not keep the table.
func TestUpAndDownStepByStep(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		wantAt(t, db, 0, 0)
		check.Same(t, "tables after Status", tables(t, db), nil)
		up(t, db, nil)
		wantAt(t, db, 4, dialect.Spring7)
		check.Equal(t, "columns", columns(t, db, "INT_LOCK"), five)
		run(t, db, insert5)
		before := rows(t, db, dialect.Spring7)
		up(t, db, nil)
		same(t, "rows", before, rows(t, db, dialect.Spring7))
		wantAt(t, db, 4, dialect.Spring7)
		down := func() { must(t, migrations.Down(t.Context(), db.DB.DB, db.Dialect, nil)) }
		down()
		wantAt(t, db, 3, dialect.Spring7)
		down()
		wantAt(t, db, 2, dialect.Spring6)
		check.Equal(t, "columns", columns(t, db, "INT_LOCK"), four)
		down()
		wantAt(t, db, 1, dialect.Spring6)
		same(t, "tables", []string{"int_lock", "int_lock_migrations"}, tables(t, db))
		down()
		wantAt(t, db, 0, 0)
		check.Same(t, "tables of version 0", tables(t, db), nil)
		down() // does nothing
		wantAt(t, db, 0, 0)
	})
}

func TestSpring6StaysAtVersion2(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		spring6 := &migrations.Options{Layout: dialect.Spring6}
		up(t, db, spring6)
		wantAt(t, db, 2, dialect.Spring6)
		if st := status(t, db, spring6); st.Target != 2 || st.Latest != 4 {
			t.Errorf("state %+v", st)
		}
		up(t, db, &migrations.Options{Layout: dialect.Spring7})
		up(t, db, spring6) // never migrates down
		wantAt(t, db, 4, dialect.Spring7)
	})
}

// TestTable checks the table's constraints: keys are case-sensitive, a key exists once per
// region, and Spring 6 cannot insert rows.
func TestTable(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		up(t, db, nil)
		run(t, db, insert5)
		run(t, db, "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CREATED_DATE, EXPIRED_AFTER)"+
			" VALUES ('A', 'default', '2026-01-31 12:00:00.123', '2030-01-31 12:00:00.123')")
		for _, refused := range []string{
			insert5,
			"INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE) VALUES ('b', 'DEFAULT', 'c', '2026-01-31 12:00:00')",
		} {
			if _, err := db.DB.ExecContext(t.Context(), refused); err == nil {
				t.Errorf("%s: no error", refused)
			}
		}
	})
}
