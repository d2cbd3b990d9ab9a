package server_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// TestPgBouncerPoolsTransactions: a session's advisory lock belongs to the shared connection, and excludes no other
// client.
func TestPgBouncerPoolsTransactions(t *testing.T) {
	db := dbtest.PgBouncer(t)
	for range 2 {
		var locked bool
		check.Must(t, db.Open(t).GetContext(t.Context(), &locked, "SELECT pg_try_advisory_lock(1)"))
		if !locked {
			t.Error("not one connection for both")
		}
	}
}
