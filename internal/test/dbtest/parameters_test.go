package dbtest_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// TestWith: parameters reach the driver and the server, whatever characters they have, and lead to the
// same database.
func TestWith(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		make           func(testing.TB) *dbtest.DB
		drivers        []string
		parameters     map[string]string
		question, want string
	}{
		"mysql": {
			dbtest.MySQL,
			[]string{"mysql"},
			map[string]string{"clientFoundRows": "true", "interpolateParams": "true", "loc": "Asia/Kolkata", "time_zone": "'+05:30'"},
			"SELECT @@time_zone", "+05:30",
		},
		"postgres": {
			dbtest.Postgres,
			[]string{"postgres", "pgx"},
			map[string]string{"application_name": "one & only"},
			"SELECT current_setting('application_name')", "one & only",
		},
		"sqlite": {dbtest.SQLite, []string{"sqlite"}, map[string]string{"_pragma": "cache_size(77)"}, "PRAGMA cache_size", "77"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := test.make(t)
			exec(t, db.DB, "CREATE TABLE t (id INT PRIMARY KEY)")
			exec(t, db.DB, "INSERT INTO t VALUES (1)")
			for _, driver := range test.drivers {
				other := db.OpenDSN(t, driver, db.With(t, test.parameters))
				if got := get(t, other, test.question); got != test.want {
					t.Errorf("%s: %q, want %q", driver, got, test.want)
				}
				result, err := other.ExecContext(t.Context(), "UPDATE t SET id = 1")
				if err != nil {
					t.Fatal(err)
				}
				if n, err := result.RowsAffected(); err != nil || n != 1 { // with clientFoundRows on MySQL, too
					t.Errorf("%s: %d rows affected, error %v", driver, n, err)
				}
			}
		})
	}
}

func TestSQLiteSettings(t *testing.T) {
	db := dbtest.SQLite(t)
	other := db.OpenDSN(t, "sqlite", db.With(t, map[string]string{"_pragma": "cache_size(77)"}))
	if mode, timeout := get(t, db.DB, "PRAGMA journal_mode"), get(t, other, "PRAGMA busy_timeout"); mode != "wal" || timeout != "10000" {
		t.Errorf("journal mode %s, busy timeout %s", mode, timeout)
	}
}
