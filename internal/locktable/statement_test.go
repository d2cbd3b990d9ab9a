package locktable

import (
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Every text of a table can be prepared on its database.
func TestAllTextsCanBePrepared(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		for _, layout := range []dialect.Layout{dialect.Spring6, dialect.Spring7} {
			noError(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, &migrations.Options{Layout: layout}))
			names, err := dialect.NamesFor("")
			noError(t, err)
			table, err := Open(t.Context(), Config{DB: db.DB.DB, Dialect: db.Dialect, Names: names, Region: "r"})
			noError(t, err)
			s := table.statements
			all := []statement{
				s.acquire, s.draw, s.drawOne, s.trim, s.peek, s.list, s.held,
				s.renew, s.release, s.deleteClient, s.pickExpired, s.keep,
			}
			if db.Dialect.JSONLists {
				all = append(all, s.acquireAll, s.peekAll, s.pick, s.renewAll.statement, s.heldAll, s.releaseAll.statement, s.deleteExpired)
			}
			for _, s := range all {
				if s.text == "" {
					continue
				}
				stmt, err := db.DB.PrepareContext(t.Context(), s.text)
				if err != nil {
					t.Errorf("%v: %v: %s", layout, err, s.text)
					continue
				}
				defer stmt.Close()
			}
		}
	})
}
