package migrations_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// TestScript_DoesWhatGotoDoes brings tables to a version by the statements of a script, sent one by one in a session,
// and then the same tables by Goto: tables, columns, number of rows and state are the same.
func TestScript_DoesWhatGotoDoes(t *testing.T) {
	t.Parallel()
	begins := map[string]func(*testing.T, *dbtest.DB){
		"nothing":          func(*testing.T, *dbtest.DB) {},
		"Spring 6's table": func(t *testing.T, db *dbtest.DB) { spring(t, db, dialect.Spring6); run(t, db, insert4) },
		"Spring 7's table": func(t *testing.T, db *dbtest.DB) { spring(t, db, dialect.Spring7); run(t, db, insert5) },
		"version 1":        func(t *testing.T, db *dbtest.DB) { must(t, goTo(t, db, 1)); run(t, db, insert4) },
		"version 2":        func(t *testing.T, db *dbtest.DB) { must(t, goTo(t, db, 2)); run(t, db, insert4) },
		"version 3":        func(t *testing.T, db *dbtest.DB) { must(t, goTo(t, db, 3)); run(t, db, insert5) },
		"version 4":        func(t *testing.T, db *dbtest.DB) { up(t, db, nil); run(t, db, insert5) },
		"may be NULL": func(t *testing.T, db *dbtest.DB) {
			up(t, db, nil)
			date := map[string]string{"postgres": "TIMESTAMP", "mysql": "DATETIME(6)", "sqlite": "TIMESTAMP"}[db.Name]
			run(t, db, "ALTER TABLE INT_LOCK DROP COLUMN EXPIRED_AFTER", "ALTER TABLE INT_LOCK ADD EXPIRED_AFTER "+date, insert4)
		},
		"down was interrupted": func(t *testing.T, db *dbtest.DB) {
			up(t, db, nil)
			run(t, db, insert5)
			if db.Name == "mysql" { // which cannot roll back a change of the schema
				run(t, db, "ALTER TABLE INT_LOCK RENAME COLUMN EXPIRED_AFTER TO LEASE_END")
			}
		},
		"the table is gone": func(t *testing.T, db *dbtest.DB) { up(t, db, nil); run(t, db, "DROP TABLE INT_LOCK") },
	}
	for name, begin := range begins {
		for _, version := range []uint{0, 2, 4} {
			t.Run(fmt.Sprintf("%s to %d", name, version), func(t *testing.T) {
				t.Parallel()
				dbtest.Each(t, func(t *testing.T, db *dbtest.DB) { bothWays(t, db, begin, version) })
			})
		}
	}
}

func goTo(t *testing.T, db *dbtest.DB, version uint) error {
	return migrations.Goto(t.Context(), db.DB.DB, db.Dialect, version, &migrations.Options{Force: true})
}

// A result is what a migration leaves.
type result struct {
	State   migrations.State
	Tables  []string
	Columns string
	Rows    int
}

func resultOf(t *testing.T, db *dbtest.DB) result {
	t.Helper()
	r := result{State: status(t, db, nil), Tables: tables(t, db)}
	if r.State.Layout != 0 {
		r.Columns = columns(t, db, "INT_LOCK")
		r.Rows = len(rows(t, db, r.State.Layout))
	}
	return r
}

// bothWays compares the two, one after the other in one database.
func bothWays(t *testing.T, db *dbtest.DB, begin func(*testing.T, *dbtest.DB), version uint) {
	begin(t, db)
	from := status(t, db, nil)
	text, scriptErr := migrations.Script(db.Dialect, from, version, nil)
	if text == "" && scriptErr == nil && from.Version != version {
		t.Error("the script is empty")
	}
	if scriptErr == nil {
		send(t, db, text)
	}
	byHand := resultOf(t, db)

	drop(t, db)
	begin(t, db)
	gotoErr := goTo(t, db, version)
	same(t, "the tables after Goto and after the script", resultOf(t, db), byHand)
	if (gotoErr == nil) != (scriptErr == nil) {
		t.Errorf("Goto: %v, but the script: %v", gotoErr, scriptErr)
	}
}

// drop removes all tables, whatever state they are in.
func drop(t *testing.T, db *dbtest.DB) {
	t.Helper()
	for _, name := range tables(t, db) {
		if name == "int_lock_fence" && db.Name != "sqlite" {
			continue // a sequence, on some servers
		}
		run(t, db, "DROP TABLE "+strings.ToUpper(name))
	}
}

var lineComment = regexp.MustCompile(`(?m)^--.*\n`)

// send sends a script as a client does that ends at the first error.
func send(t *testing.T, db *dbtest.DB, text string) {
	t.Helper()
	conn := check.Value(db.DB.Conn(t.Context()))(t)
	defer conn.Close()
	for part := range strings.SplitSeq(lineComment.ReplaceAllString(text, ""), ";\n") {
		if statement := strings.TrimSpace(part); statement != "" {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v\n%s", statement, err, text)
			}
		}
	}
}
