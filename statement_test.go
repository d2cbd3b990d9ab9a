package sqllock

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

// Every text that a repository has can be prepared on its database.
func TestAllTextsCanBePrepared(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		for _, layout := range []dialect.Layout{dialect.Spring6, dialect.Spring7} {
			noError(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, &migrations.Options{Layout: layout}))
			r, err := NewRepository(db.DB, db.Dialect, nil)
			noError(t, err)
			s := r.statements
			all := []statement{
				s.acquire, s.draw, s.drawOne, s.trim, s.peek, s.list, s.held,
				s.renew, s.remove, s.removeClient, s.pickExpired, s.leave,
			}
			if db.Dialect.JSONLists {
				all = append(all, s.acquireAll, s.peekAll, s.pick, s.renewAll, s.heldAll, s.removeAll, s.removeExpired)
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
