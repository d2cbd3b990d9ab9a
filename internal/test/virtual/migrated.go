package virtual

import (
	"os"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// Migrated returns a database in virtual time, in a new file that has the lock table in a
// layout. Called in a bubble, its pool ends with the bubble.
func Migrated(tb testing.TB, layout dialect.Layout) *dbtest.DB {
	tb.Helper()
	return dbtest.SQLiteFrom(tb, Name, Template(tb, layout))
}

var templates struct {
	sync.Mutex
	files map[dialect.Layout][]byte
}

// Template returns the content of a file that has the lock table in a layout. Migrating takes
// longer than most tests, so it is done once.
func Template(tb testing.TB, layout dialect.Layout) []byte {
	tb.Helper()
	templates.Lock()
	defer templates.Unlock()
	if content, ok := templates.files[layout]; ok {
		return content
	}
	content, err := migrate(tb, layout)
	if err != nil {
		tb.Fatal(err)
	}
	if templates.files == nil {
		templates.files = make(map[dialect.Layout][]byte)
	}
	templates.files[layout] = content
	return content
}

func migrate(tb testing.TB, layout dialect.Layout) ([]byte, error) {
	tb.Helper()
	db := dbtest.SQLiteFrom(tb, Name, nil)
	if err := migrations.Up(tb.Context(), db.DB.DB, db.Dialect, &migrations.Options{Layout: layout}); err != nil {
		return nil, err
	}
	// Whatever is in the write-ahead log goes to the file.
	if _, err := db.DB.ExecContext(tb.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return nil, err
	}
	return os.ReadFile(db.Path)
}
