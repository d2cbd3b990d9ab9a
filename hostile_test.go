package sqllock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// hostile are settings with which statements leave out rows, or fail, or begin transactions.
var hostile = map[string]string{"sql_select_limit": "2", "sql_safe_updates": "1", "completion_type": "1"}

// Open's sessions have the server's defaults, whatever is set for all sessions. It takes a server of its own.
func TestGlobalSettingsOfMySQL(t *testing.T) {
	t.Parallel()
	s, admin := watchedServers["mysql"].run(t)
	for name, value := range hostile {
		_, err := admin.ExecContext(t.Context(), "SET GLOBAL "+name+" = "+value)
		must(t, err)
	}
	a, b := byName(t, "mysqllock"), byName(t, "mysqllock")
	first, second := a.opened(t, s.DSN(), openOptions{}), b.opened(t, s.DSN(), openOptions{})
	for range 2 {
		joint, err := first.ObtainAll("a", "b", "c", "d", "e")
		must(t, err)
		lease, err := joint.TryLock(t.Context())
		must(t, err)
		must(t, lease.Renew(t.Context()))
		must(t, lease.Unlock(t.Context()))
		for _, key := range []string{"a", "e"} {
			alone, err := second.TryLock(t.Context(), key)
			must(t, err)
			must(t, alone.Unlock(t.Context()))
		}
	}
}

// Over a pool of one's own such a setting is refused, with its name.
func TestSessionsThatLeaveOutRowsAreRefused(t *testing.T) {
	t.Parallel()
	for server, database := range map[string]func(testing.TB) *dbtest.DB{"MariaDB": dbtest.MySQL, "MySQL": dbtest.OracleMySQL} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			db := database(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			for name, value := range hostile {
				pool := db.OpenDSN(t, db.Driver, db.With(t, map[string]string{name: value}))
				_, err := sqllock.NewRepository(t.Context(), pool.DB, db.Dialect, nil)
				if !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), "has "+name+"=") {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}
