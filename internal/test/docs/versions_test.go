package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestCompatibility_TellsTheVersions: docs/compatibility.md has the versions that the tests run, and its tables have
// no row that is not compared with them.
func TestCompatibility_TellsTheVersions(t *testing.T) {
	t.Parallel()
	const pom, workflow = "dev/interop/spring/pom.xml", ".github/workflows/databases.yml"
	version := func(artifact string) string { return artifact + `</artifactId>\s*<version>([\d.]+)<` }
	rows := tableOf(t, "### What else the tests run")
	for name, source := range map[string]struct {
		pattern string
		files   []string
	}{
		"Go":                       {`(?:golang:|GOTOOLCHAIN=go)([\d.]+\d)`, []string{".github/workflows/check.yml", ".ci/run"}},
		"pgx":                      {`jackc/pgx/v5 v([\d.]+)`, []string{"go.mod", "adapters/tests/go.mod"}},
		"lib/pq":                   {`lib/pq v([\d.]+)`, []string{"go.mod", "adapters/tests/go.mod"}},
		"go-sql-driver/mysql":      {`go-sql-driver/mysql v([\d.]+)`, []string{"go.mod", "adapters/tests/go.mod"}},
		"modernc.org/sqlite":       {`modernc.org/sqlite v([\d.]+)`, []string{"go.mod", "adapters/tests/go.mod"}},
		"golang-migrate":           {`golang-migrate/migrate/v4 v([\d.]+)`, []string{"go.mod", "adapters/tests/go.mod"}},
		"Spring Integration":       {`<spring.integration.version>([\d.]+)<`, []string{pom}},
		"PostgreSQL's JDBC driver": {version("postgresql"), []string{pom}},
		"MariaDB's JDBC driver":    {version("mariadb-java-client"), []string{pom}},
		"Connector/J":              {version("mysql-connector-j"), []string{pom}},
	} {
		wantVersions(t, name, rows[name][0], source.pattern, source.files...)
		delete(rows, name)
	}
	if len(rows) > 0 {
		t.Errorf("compared with nothing: %v", rows)
	}

	// The servers that they run on are those of package servers' test of the same name.
	rows = tableOf(t, "## Servers and versions")
	for name, row := range rows {
		if image, ok := map[string]string{"PostgreSQL": "postgres", "MySQL": "mysql", "MariaDB": "mariadb"}[name]; ok {
			tested, more := strings.Split(row[1], ", "), strings.Split(row[2], ", ")
			found := versionsIn(t, `"`+image+`:([\d.]+)"`, workflow)
			if missing := without(found, slices.Concat(tested, more)); len(missing) > 0 {
				t.Errorf("%s: the workflow runs %v, too", name, missing)
			}
			if missing := without(more, found); len(missing) > 0 {
				t.Errorf("%s: the workflow does not run %v", name, missing)
			}
		}
	}
}

// tableOf returns the rows of the table below a heading of docs/compatibility.md, by their first cells.
func tableOf(t *testing.T, title string) map[string][]string {
	t.Helper()
	text := string(check.Value(os.ReadFile("docs/compatibility.md"))(t))
	_, text, found := strings.Cut(text, title+"\n")
	if !found {
		t.Fatalf("no heading %q", title)
	}
	rows := make(map[string][]string)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			break
		}
		if cells := strings.Split(strings.Trim(line, "| \n"), " | "); strings.HasPrefix(line, "| ") && len(cells) > 2 && cells[0] != "server" {
			rows[cells[0]] = cells[1:]
		}
	}
	if len(rows) < 3 {
		t.Fatalf("%s: no table", title)
	}
	return rows
}

func wantVersions(t *testing.T, name, told, pattern string, files ...string) {
	t.Helper()
	if found := strings.Join(versionsIn(t, pattern, files...), ", "); told != found {
		t.Errorf("%s: docs/compatibility.md says %q, the tests run %q", name, told, found)
	}
}

// versionsIn returns the versions that a pattern finds in files, each once.
func versionsIn(t *testing.T, pattern string, files ...string) (all []string) {
	t.Helper()
	for _, file := range files {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(check.Value(os.ReadFile(file))(t)), -1) {
			if !slices.Contains(all, match[1]) {
				all = append(all, match[1])
			}
		}
	}
	return all
}

func without(all, others []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(others, s) })
}
