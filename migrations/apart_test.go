package migrations_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// twoSchemas returns a database whose tables are found in a second schema, too, and that schema: by its name, and alone.
func twoSchemas(t *testing.T) (both, second *dbtest.DB, name string) {
	t.Helper()
	first := dbtest.Postgres(t)
	name = schema(t, first)
	var current string
	must(t, first.DB.GetContext(t.Context(), &current, "SELECT current_schema()"))
	on := func(path string) *dbtest.DB {
		db := *first
		db.DSN = first.With(t, map[string]string{"search_path": path})
		db.DB = db.Open(t)
		return &db
	}
	return on(current + "," + name), on(name), name
}

// nothingChanges checks that no migration to one of the versions changes anything.
func nothingChanges(t *testing.T, db *dbtest.DB, text string, versions ...uint) {
	t.Helper()
	before := tables(t, db)
	from := status(t, db, nil)
	check.Contains(t, from.Apart, text)
	for _, version := range versions {
		wantErr(t, goTo(t, db, version), migrations.ErrState, text)
		wantErr(t, check.ErrorOf(migrations.Script(db.Dialect, from, version, nil)), migrations.ErrState, text)
	}
	same(t, "tables", before, tables(t, db))
}

// TestTableOfALaterSchema has Spring's table, with a row, in the second schema of the search path. A new one in the first
// would hide it: those who hold its locks, and those who come, would use two tables.
func TestTableOfALaterSchema(t *testing.T) {
	t.Parallel()
	for _, layout := range []dialect.Layout{dialect.Spring6, dialect.Spring7} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			both, second, name := twoSchemas(t)
			spring(t, second, layout)
			run(t, second, map[dialect.Layout]string{dialect.Spring6: insert4, dialect.Spring7: insert5}[layout])
			before := rows(t, second, layout)

			text := "INT_LOCK is in the schema " + name + ", and new tables would be made in t_"
			wantErr(t, migrations.Up(t.Context(), both.DB.DB, both.Dialect, nil), migrations.ErrState, text, "in the prefix, "+name+".INT_ or t_")
			nothingChanges(t, both, text, 1, 2, 4)
			must(t, goTo(t, both, 0)) // which it has
			check.Equal(t, "tables of the first schema", len(tables(t, both)), 0)
			same(t, "rows", before, rows(t, both, layout))

			up(t, both, &migrations.Options{Prefix: name + ".INT_"}) // as the error says
			up(t, both, nil)
			check.Equal(t, "tables of the first schema", len(tables(t, both)), 0)
			same(t, "rows", before, rows(t, both, layout))
		})
	}
}

// TestTablesOfALaterSchema are up to date, so that an application which only reads goes on. No step makes another table beside
// them, and none removes them.
func TestTablesOfALaterSchema(t *testing.T) {
	t.Parallel()
	both, second, _ := twoSchemas(t)
	up(t, second, nil)
	up(t, both, nil)
	nothingChanges(t, both, "INT_LOCK is in the schema ", 0, 1, 3)
	wantErr(t, migrations.Down(t.Context(), both.DB.DB, both.Dialect, nil), migrations.ErrState)
	must(t, goTo(t, second, 3))
	nothingChanges(t, both, "INT_LOCK is in the schema ", 4)
	wantAt(t, second, 3, dialect.Spring7)
}

// TestTablesOfTwoSchemas have a lock table of Spring's in the first schema. What migrations have made in the second one does not
// belong to it.
func TestTablesOfTwoSchemas(t *testing.T) {
	t.Parallel()
	both, second, _ := twoSchemas(t)
	up(t, second, nil)
	spring(t, both, dialect.Spring7)
	nothingChanges(t, both, "INT_LOCK_FENCE is in the schema ", 0, 2)
	wantAt(t, second, 4, dialect.Spring7)
}

// TestTablesOfTheFirstSchema are changed alone, whatever is in the second schema. At version 3 the table of names is missing in
// the first one, and the statements of programs find that of the second.
func TestTablesOfTheFirstSchema(t *testing.T) {
	t.Parallel()
	script := func(t *testing.T, db *dbtest.DB, from migrations.State) {
		send(t, db, check.Value(migrations.Script(db.Dialect, from, 0, nil))(t))
	}
	remove := map[string]func(*testing.T, *dbtest.DB){
		"goto 0":   func(t *testing.T, db *dbtest.DB) { must(t, goTo(t, db, 0)) },
		"a script": func(t *testing.T, db *dbtest.DB) { script(t, db, status(t, db, nil)) },
		"a script for a version alone": func(t *testing.T, db *dbtest.DB) {
			script(t, db, migrations.State{Version: status(t, db, nil).Version})
		},
	}
	for name, remove := range remove {
		for _, version := range []uint{2, 3, 4} {
			t.Run(fmt.Sprintf("%s from version %d", name, version), func(t *testing.T) {
				t.Parallel()
				both, second, _ := twoSchemas(t)
				up(t, both, nil)
				up(t, second, nil)
				before := tables(t, second)
				must(t, goTo(t, both, 3))
				up(t, both, nil)
				must(t, goTo(t, both, version))
				remove(t, both)
				check.Equal(t, "tables of the first schema", len(tables(t, both)), 0)
				same(t, "tables of the second schema", before, tables(t, second))
				wantAt(t, second, 4, dialect.Spring7)
			})
		}
	}
}

// TestFenceOfALaterSchema may be the one that programs have drawn from, beside a table of the first schema.
func TestFenceOfALaterSchema(t *testing.T) {
	t.Parallel()
	both, second, _ := twoSchemas(t)
	must(t, goTo(t, both, 1))
	up(t, second, nil)
	nothingChanges(t, both, "INT_LOCK_FENCE is in the schema ", 2, 4)
	check.Contains(t, status(t, both, nil).Apart, "a new one must begin above them")
	wantAt(t, second, 4, dialect.Spring7)
}

// TestTemporaryTable hides the lasting one from one connection of the pool.
func TestTemporaryTable(t *testing.T) {
	t.Parallel()
	dbtest.Databases{"postgres": dbtest.Postgres, "sqlite": dbtest.SQLite}.Each(t, func(t *testing.T, db *dbtest.DB) {
		db.DB.SetMaxOpenConns(1)
		run(t, db, "CREATE TEMPORARY TABLE INT_LOCK (LOCK_KEY CHAR(36), REGION VARCHAR(100), CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP)")
		nothingChanges(t, db, "INT_LOCK is temporary: drop it", 4)
		run(t, db, "DROP TABLE INT_LOCK")
		up(t, db, nil)
		run(t, db, "CREATE TEMPORARY TABLE INT_LOCK (LOCK_KEY CHAR(36), REGION VARCHAR(100), CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP)")
		nothingChanges(t, db, "INT_LOCK is temporary: drop it", 0, 3)
	})
}

// TestTableOfAnAttachedFile is found, and a new one in the main file would hide it.
func TestTableOfAnAttachedFile(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	db.DB.SetMaxOpenConns(1) // a file is attached to a connection
	must(t, check.ErrorOf(db.DB.ExecContext(t.Context(), "ATTACH ? AS other", filepath.Join(t.TempDir(), "other.db"))))
	t.Cleanup(func() { must(t, check.ErrorOf(db.DB.ExecContext(context.Background(), "DETACH other"))) })
	up(t, db, &migrations.Options{Prefix: "other.INT_"})
	up(t, db, nil)
	nothingChanges(t, db, "INT_LOCK is in the schema other, and new tables would be made in main: name the one that is meant in the prefix, other.INT_ or main.INT_", 0, 3)
	up(t, db, &migrations.Options{Prefix: "main.INT_"})
	must(t, goTo(t, db, 3))
	up(t, db, nil)
	must(t, goTo(t, db, 0))
	check.Equal(t, "tables of the main file", len(tables(t, db)), 0)
	for _, name := range []string{"INT_LOCK", "INT_LOCK_FENCE", "INT_LOCK_NAME", "INT_LOCK_MIGRATIONS"} {
		must(t, check.ErrorOf(db.DB.ExecContext(t.Context(), "SELECT * FROM other."+name)))
	}
}
