package virtual_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

var must = check.Must

// TestAStatementIsKept runs a statement while its rows are read, after a change of the table,
// and after an error.
func TestAStatementIsKept(t *testing.T) {
	t.Parallel()
	inBubbles(t, func(t *testing.T, db *dbtest.DB) {
		conn, err := db.DB.Connx(t.Context())
		must(t, err)
		defer func() { must(t, conn.Close()) }()
		run := func(statement string, args ...any) {
			t.Helper()
			_, err := conn.ExecContext(t.Context(), statement, args...)
			must(t, err)
		}
		run("CREATE TABLE NUMBERS (N INTEGER PRIMARY KEY)")
		const insert, query = "INSERT INTO NUMBERS VALUES (?)", "SELECT * FROM NUMBERS ORDER BY N"
		for n := range 3 {
			run(insert, n)
		}
		if _, err := conn.ExecContext(t.Context(), insert, 1); err == nil {
			t.Error("a duplicate was inserted")
		}
		run(insert, 3)

		outer, err := conn.QueryxContext(t.Context(), query)
		must(t, err)
		rows := 0
		for outer.Next() {
			var inner []int
			must(t, conn.SelectContext(t.Context(), &inner, query))
			rows += len(inner)
		}
		must(t, outer.Err())
		must(t, outer.Close())
		if rows != 4*4 {
			t.Errorf("%d rows", rows)
		}

		run("ALTER TABLE NUMBERS ADD COLUMN SQUARE INTEGER")
		run("UPDATE NUMBERS SET SQUARE = N * N")
		var all []struct {
			N      int `db:"N"`
			Square int `db:"SQUARE"`
		}
		must(t, conn.SelectContext(t.Context(), &all, query))
		if len(all) != 4 || all[3].Square != 9 {
			t.Errorf("%+v", all)
		}
	})
}
