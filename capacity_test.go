package sqllock_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// TestServersHaveRoomForAllCells: a cell whose tests wait for their turn keeps its connections for a
// while, so all of the chosen cells may have theirs at once. A full server refuses the next one, which
// then fails every test that runs there. Other tests have at most as many as three cells.
func TestServersHaveRoomForAllCells(t *testing.T) {
	t.Parallel()
	needed := make(map[string]int)
	cells, _ := chosenCells()
	for _, cell := range cells {
		needed[cell.server] += cellPool
		if cell.server == server.PgBouncer { // which has as many to PostgreSQL
			needed[server.Postgres] += cellPool
		}
	}
	for name, s := range map[string]struct {
		open func(testing.TB) *dbtest.DB
		ask  string
	}{
		server.Postgres:       {dbtest.Postgres, "SELECT current_setting('max_connections')"},
		server.PostgresNewest: {dbtest.PostgresNewest, "SELECT current_setting('max_connections')"},
		server.MySQL:          {dbtest.MySQL, "SELECT @@max_connections"},
		server.OracleMySQL:    {dbtest.OracleMySQL, "SELECT @@max_connections"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var limit int
			must(t, s.open(t).DB.Get(&limit, s.ask))
			if wanted := needed[name] + 3*cellPool; limit < wanted {
				t.Errorf("max_connections is %d, but the cells and other tests may have %d", limit, wanted)
			}
		})
	}
}
