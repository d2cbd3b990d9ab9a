package virtualsqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

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
	content, err := migrate(tb.Context(), filepath.Join(tb.TempDir(), "template.db"), layout)
	if err != nil {
		tb.Fatal(err)
	}
	if templates.files == nil {
		templates.files = make(map[dialect.Layout][]byte)
	}
	templates.files[layout] = content
	return content
}

func migrate(ctx context.Context, path string, layout dialect.Layout) (content []byte, err error) {
	db, err := sql.Open(Name, DSN(path))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := migrations.Up(ctx, db, dialect.SQLite(), &migrations.Options{Layout: layout}); err != nil {
		return nil, err
	}
	// What is in the write-ahead log goes to the file.
	if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
