package dbtest_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/dbtest"
)

func TestWithMySQL(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(testing.TB) *dbtest.DB{"mysql": dbtest.MySQL, "oracle-mysql": dbtest.OracleMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := make(t)
			exec(t, db.DB, "CREATE TABLE t (id INT PRIMARY KEY)")
			exec(t, db.DB, "INSERT INTO t VALUES (1)")
			for value, rows := range map[string]int64{"true": 1, "false": 0} {
				found := db.OpenDSN(t, "mysql", db.With(t, map[string]string{"clientFoundRows": value}))
				result, err := found.ExecContext(t.Context(), "UPDATE t SET id = 1")
				if err != nil {
					t.Fatal(err)
				}
				if n, err := result.RowsAffected(); err != nil || n != rows {
					t.Errorf("clientFoundRows=%s: %d rows affected, error %v", value, n, err)
				}
			}
			elsewhere := db.OpenDSN(t, "mysql", db.With(t, map[string]string{
				"interpolateParams": "true",
				"parseTime":         "true",
				"loc":               "Asia/Kolkata",
				"time_zone":         "'+05:30'",
			}))
			var zone string
			if err := elsewhere.GetContext(t.Context(), &zone, "SELECT @@time_zone"); err != nil || zone != "+05:30" {
				t.Errorf("session time zone %q, error %v", zone, err)
			}
			var at time.Time
			err := elsewhere.GetContext(t.Context(), &at, "SELECT CAST(? AS DATETIME)", "2020-02-29 12:00:00")
			if want := time.Date(2020, 2, 29, 6, 30, 0, 0, time.UTC); err != nil || !at.Equal(want) {
				t.Errorf("%v, error %v; not %v", at, err, want)
			}
		})
	}
}

func TestWithPostgres(t *testing.T) {
	db := dbtest.Postgres(t)
	exec(t, db.DB, "CREATE TABLE t (id INT PRIMARY KEY)")
	dsn := db.With(t, map[string]string{"application_name": "one & only"})
	for _, driver := range []string{"postgres", "pgx"} {
		other := db.OpenDSN(t, driver, dsn)
		exec(t, other, "TRUNCATE t") // the schema is still the test's
		var name string
		if err := other.GetContext(t.Context(), &name, "SELECT current_setting('application_name')"); err != nil || name != "one & only" {
			t.Errorf("%s: application_name %q, error %v", driver, name, err)
		}
	}
}

func TestWithSQLite(t *testing.T) {
	db := dbtest.SQLite(t)
	exec(t, db.DB, "CREATE TABLE t (id INT PRIMARY KEY)")
	other := db.OpenDSN(t, "sqlite", db.With(t, map[string]string{"_pragma": "cache_size(77)"}))
	exec(t, other, "INSERT INTO t VALUES (1)")
	for pragma, want := range map[string]int{"cache_size": 77, "busy_timeout": 10000} {
		var got int
		if err := other.GetContext(t.Context(), &got, "PRAGMA "+pragma); err != nil || got != want {
			t.Errorf("%s: %d, error %v; not %d", pragma, got, err, want)
		}
	}
}
