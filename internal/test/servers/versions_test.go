package servers_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// docs/compatibility.md names the versions of the servers that tests run on, whether they are started for them or
// those of the workflow.
func TestCompatibility_TellsTheServers(t *testing.T) {
	t.Parallel()
	page := string(check.Value(os.ReadFile("../../../docs/compatibility.md"))(t))
	told := func(name string) (all []string) {
		_, row, found := strings.Cut(page, "\n| "+name+" | ")
		row, _, _ = strings.Cut(row, "\n")
		cells := strings.Split(strings.TrimSuffix(row, " |"), " | ")
		if !found || len(cells) != 3 {
			t.Fatalf("%s: %q", name, cells)
		}
		return append(strings.Split(cells[1], ", "), strings.Split(cells[2], ", ")...)
	}
	postgres, mysql, mariadb := told("PostgreSQL"), told("MySQL"), told("MariaDB")
	databases{
		"PostgreSQL": dbtest.Postgres, "PostgreSQL's newest": dbtest.PostgresNewest,
		"MariaDB": dbtest.MySQL, "MariaDB's newest": dbtest.MariaDBNewest, "MySQL": dbtest.OracleMySQL,
	}.each(t, func(t *testing.T, db *dbtest.DB) {
		version := db.Version(t)
		series := strings.Split(version, ".")
		name, length := mysql, 2
		if db.Name == "postgres" {
			name, length = postgres, 1
		} else if strings.Contains(version, "MariaDB") {
			name = mariadb
		}
		if got := strings.Join(series[:length], "."); !slices.Contains(name, got) {
			t.Errorf("docs/compatibility.md names %v, the server is %s", name, version)
		}
	})
}
