package sqlitelock_test

import (
	"bytes"
	"database/sql"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/drivers/sqlitelock"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
	"github.com/sqllock/sqllock/internal/test/check"
)

// Another SQLite library in the process is warned of, and none is not. A driver stays registered, so nothing else of
// this program may depend on it.
func TestOpen_WarnsOfAnotherLibrary(t *testing.T) {
	if slices.Contains(sql.Drivers(), "sqlite3") {
		t.Skip("the driver is registered already: this is a repetition in the same process")
	}
	open := func() string {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		registry := check.Value(sqlitelock.Open(t.Context(), sqlitedriver.DSN(filepath.Join(t.TempDir(), "l.db")), nil))(t)
		check.Must(t, registry.Close(t.Context()))
		return log.String()
	}
	check.Equal(t, "log", open(), "")
	pool := check.Value(sql.Open("sqlite", ":memory:"))(t)
	sql.Register("sqlite3", pool.Driver())
	check.Must(t, pool.Close())
	if log := open(); !strings.Contains(log, "another SQLite library") {
		t.Errorf("no warning: %q", log)
	}
}
