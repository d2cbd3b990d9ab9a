package servers_test

import (
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// docs/compatibility.md names the versions of the servers that tests run on, whether they are started for them or
// those of the workflow.
func TestCompatibility_TellsTheServers(t *testing.T) {
	t.Parallel()
	page := string(check.Value(os.ReadFile("../../../docs/compatibility.md"))(t))
	told := func(name string) (all []string) {
		_, row, found := strings.Cut(page, "\n| "+name+" | ")
		row, _, _ = strings.Cut(row, "\n")
		cells := strings.Split(row, "|")
		if !found || len(cells) != 4 { // the last one is empty
			t.Fatalf("%s: %q", name, cells)
		}
		for version := range strings.SplitSeq(cells[1]+","+cells[2], ",") {
			all = append(all, strings.TrimSpace(version))
		}
		return all
	}
	postgres, mysql, mariadb := told("PostgreSQL"), told("MySQL"), told("MariaDB")
	databases{
		"PostgreSQL": dbtest.Postgres, "PostgreSQL's newest": dbtest.PostgresNewest, "PostgreSQL's beta": dbtest.PostgresBeta,
		"MariaDB": dbtest.MySQL, "MariaDB's newest": dbtest.MariaDBNewest, "MySQL": dbtest.OracleMySQL,
	}.each(t, func(t *testing.T, db *dbtest.DB) {
		version := db.Version(t)
		series := strings.Split(version, ".")
		name, length := mysql, 2
		if db.Name == "postgres" {
			name, length = postgres, 1
			series[0] = regexp.MustCompile(`^\d+`).FindString(series[0]) // of 19beta3 and 19rc1
		} else if strings.Contains(version, "MariaDB") {
			name = mariadb
		}
		if got := strings.Join(series[:length], "."); !slices.Contains(name, got) {
			t.Errorf("docs/compatibility.md names %v, the server is %s", name, version)
		}
	})

	// What stands in front of a server tells its own version in its console.
	for name, pooler := range map[string]struct{ told, database, question string }{
		server.PgBouncer:       {"PgBouncer", "pgbouncer", "SHOW VERSION"},
		server.PgBouncerNewest: {"PgBouncer", "pgbouncer", "SHOW VERSION"},
		server.Pgpool:          {"Pgpool-II", "postgres", "SHOW POOL_VERSION"},
	} {
		names := told(pooler.told)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := check.Value(url.Parse(dbtest.DSN(t, name)))(t)
			u.Path = "/" + pooler.database
			db := sqlx.MustOpen("postgres", u.String()) // the console answers no ping
			t.Cleanup(func() { must(t, db.Close()) })
			var version string
			must(t, db.GetContext(t.Context(), &version, pooler.question))
			version, _, _ = strings.Cut(strings.TrimPrefix(version, "PgBouncer "), " ")
			if series := strings.Split(version, "."); !slices.Contains(names, series[0]+"."+series[1]) {
				t.Errorf("docs/compatibility.md names %v, it is %s", names, version)
			}
		})
	}
}
