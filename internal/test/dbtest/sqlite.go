package dbtest

import (
	"os"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite", which needs no C compiler

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
)

// SQLite returns a database in a new file, in WAL mode, with a busy_timeout of ten seconds.
func SQLite(tb testing.TB) *DB {
	tb.Helper()
	return SQLiteFrom(tb, "sqlite", nil)
}

// SQLiteFrom is [SQLite] through another driver, with a copy of a database's file.
func SQLiteFrom(tb testing.TB, driver string, content []byte) *DB {
	tb.Helper()
	path := filepath.Join(fileDir(tb), "test.db")
	check.Must(tb, os.WriteFile(path, content, 0o600))
	db := &DB{Name: "sqlite", Server: server.SQLite, Driver: driver, DSN: virtualsqlite.DSN(path), Path: path, Dialect: dialect.SQLite()}
	db.DB = open(tb, db.Driver, db.DSN)
	return db
}

// fileDir returns an empty directory beside those of the servers of this run.
func fileDir(tb testing.TB) string {
	tb.Helper()
	parent := os.Getenv(server.ScratchVariable)
	if parent == "" {
		return tb.TempDir()
	}
	dir, err := os.MkdirTemp(parent, "sqlite-") //nolint:usetesting // not where other temporary files are
	check.Must(tb, err)
	tb.Cleanup(func() {
		check.Is(tb, os.RemoveAll(dir), nil)
	})
	return dir
}
