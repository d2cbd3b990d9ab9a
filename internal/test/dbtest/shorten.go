package dbtest

import "testing"

// Shorten makes all leases in a table of locks end sooner by the given number of seconds. The
// table has the five columns. A test that waits for the end of a lease thereby need not choose
// a time-to-live that is long enough for the machine and short enough for the test.
func (db *DB) Shorten(tb testing.TB, table string, seconds int) {
	tb.Helper()
	sooner := map[string]string{
		"sqlite":   "datetime(EXPIRED_AFTER, 'subsec', '-' || CAST(? AS INTEGER) || ' seconds')",
		"postgres": "EXPIRED_AFTER - $1 * INTERVAL '1 second'",
		"mysql":    "EXPIRED_AFTER - INTERVAL ? SECOND",
	}[db.Name]
	if _, err := db.DB.ExecContext(tb.Context(), "UPDATE "+table+" SET EXPIRED_AFTER = "+sooner, seconds); err != nil {
		tb.Fatalf("shorten the leases in %s: %v", table, err)
	}
}
