package dbtest

import (
	"strings"
	"testing"
)

// Version returns the version that the server reports:
// "15.18", "10.11.19-MariaDB-0+deb12u1".
func (db *DB) Version(tb testing.TB) string {
	tb.Helper()
	query, ok := map[string]string{
		"sqlite":   "SELECT sqlite_version()",
		"postgres": "SELECT current_setting('server_version')",
		"mysql":    "SELECT VERSION()",
	}[db.Name]
	if !ok {
		tb.Fatalf("no way to ask %s for its version", db.Name)
	}
	var version string
	if err := db.DB.GetContext(tb.Context(), &version, query); err != nil {
		tb.Fatalf("version of %s: %v", db.Server, err)
	}
	version, _, _ = strings.Cut(version, " ") // Debian's PostgreSQL appends more
	return version
}
