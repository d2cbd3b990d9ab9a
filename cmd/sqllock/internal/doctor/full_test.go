package doctor

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/migrations"
)

// TestFullDisk fills an SQLite file up to its limit, which gives the error of a full disk. The advice is about the
// disk, not about rights and triggers.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks.db")
	db := check.Value(sqlx.Open("sqlite", path))(t)
	defer db.Close()
	check.Must(t, migrations.Up(t.Context(), db.DB, dialect.SQLite(), nil))
	var pages string
	check.Must(t, db.GetContext(t.Context(), &pages, "PRAGMA page_count"))
	dsn := "file:" + path + "?_pragma=max_page_count(" + pages + ")"
	limited := check.Value(sqlx.Open("sqlite", dsn))(t)
	defer limited.Close()
	for { // as many rows as fit; the last ones are small
		_, err := limited.ExecContext(t.Context(), "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES (hex(randomblob(18)), 'full', 'other', '2026-01-01 00:00:00', '2026-01-01 00:00:00')")
		if err != nil {
			check.Contains(t, err.Error(), "database or disk is full")
			break
		}
	}
	findings := check.Value(examine(t.Context(), &connect.Flags{DSN: dsn, Prefix: "INT_", Region: "DEFAULT"}))(t)
	var trip finding
	for _, f := range findings {
		if f.Subject == "round trip" {
			trip = f
		}
		if f.Severity != good && strings.Contains(f.Advice, "may SELECT") {
			t.Errorf("the advice is about rights: %+v", f)
		}
	}
	check.Equal(t, "severity", trip.Severity, broken)
	check.Contains(t, trip.Advice, "free space on it")
}
