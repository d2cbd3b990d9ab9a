package server_test

import (
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

func TestPgBouncer(t *testing.T) {
	s := startNew(t, server.PgBouncer)
	t.Run("pools transactions", func(t *testing.T) { poolsTransactions(t, s) })
	for _, driver := range []string{"postgres", "pgx"} {
		t.Run("DSN suits "+driver, func(t *testing.T) { suitsDriver(t, s, driver) })
	}
}

// poolsTransactions checks that transactions are pooled: a session's advisory lock belongs to
// the shared connection and excludes no other client.
func poolsTransactions(t *testing.T, s *server.Server) {
	t.Helper()
	for range 2 {
		var locked bool
		client := open(t, "postgres", s.DSN())
		if err := client.QueryRowContext(t.Context(), "SELECT pg_try_advisory_lock(1)").Scan(&locked); err != nil || !locked {
			t.Errorf("locked is %t, error %v: not one connection for both", locked, err)
		}
	}
}

// suitsDriver would fail without the parameters in the DSN, since the two parts of a statement
// could reach different connections.
func suitsDriver(t *testing.T, s *server.Server, driver string) {
	t.Helper()
	db := open(t, driver, s.DSN())
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			for range 50 {
				var got int
				var word string
				err := db.QueryRowContext(t.Context(), "SELECT $1::int, $2::text", n, driver).Scan(&got, &word)
				if err != nil || got != n || word != driver {
					t.Errorf("%d %s, error %v; not %d %s", got, word, err, n, driver)
					return
				}
				if _, err := db.ExecContext(t.Context(), "SELECT set_config('sqllock.x', $1, true)", word); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
