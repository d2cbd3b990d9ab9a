package sqllock_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

var must = check.Must

// TestMain checks that no test or example leaves a goroutine behind.
func TestMain(m *testing.M) { testmain.Run(m) }

const module = "github.com/sqllock/sqllock"

// TestImports holds the import graph of docs/design.md: each package imports only what stands in its
// row of testdata/imports.txt, on every system.
func TestImports(t *testing.T) {
	t.Parallel()
	rows := readImportRows(t)
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, line := range check.Value(goList(system, `{{.ImportPath}} {{join .Imports " "}}`))(t) {
			fields := strings.Fields(line)
			pkg := relative(fields[0])
			allowed, ok := rowOf(rows, pkg)
			if !ok {
				t.Errorf("%s has no row in testdata/imports.txt", pkg)
				continue
			}
			for _, imported := range fields[1:] {
				if own := relative(imported); own != imported && !matches(allowed, own) {
					t.Errorf("%s: %s imports %s", system, pkg, own)
				}
			}
		}
	}
}

// TestLinks holds what an application links that embeds the package.
func TestLinks(t *testing.T) {
	t.Parallel()
	allowed := []string{
		"github.com/jmoiron/sqlx", "github.com/jmoiron/sqlx/reflectx", ".", "dialect", "observe",
		"internal/batch", "internal/bounded", "internal/clientid", "internal/dbcall", "internal/engine", "internal/expiring", "internal/failure", "internal/jitter", "internal/locktable", "internal/lru",
		"internal/fair", "internal/names", "internal/poll", "internal/probe", "internal/report", "internal/seatkey", "internal/sqltext", "internal/stmt", "internal/transaction", "internal/turns",
	}
	for _, dep := range dependencies(t)["."] {
		if isExternal(dep) && !slices.Contains(allowed, relative(dep)) {
			t.Errorf("sqllock links %s", dep)
		}
	}
}

// TestNoLinks holds what a package must not link, not even through others.
func TestNoLinks(t *testing.T) {
	t.Parallel()
	const pgx, pq, mysql, sqlite = "github.com/jackc/pgx/v5", "github.com/lib/pq", "github.com/go-sql-driver/mysql", "modernc.org/sqlite"
	const migrations, migrate = module + "/migrations", "github.com/golang-migrate/migrate/v4"
	const fsnotify = "github.com/fsnotify/fsnotify" // wakes waiters on SQLite
	for pkg, forbidden := range map[string][]string{
		"drivers/pgxlock":    {pq, mysql, sqlite, migrations, migrate, fsnotify},
		"drivers/pqlock":     {pgx, mysql, sqlite, migrations, migrate, fsnotify}, // but pgconn, the lower half of pgx, for wake-ups
		"drivers/mysqllock":  {pgx, pgx + "/pgconn", pq, sqlite, migrations, migrate, fsnotify},
		"drivers/sqlitelock": {pgx, pgx + "/pgconn", pq, mysql}, // it links migrations: it creates its file and the tables in it
		"migrations":         {module},
		"drivers/notify":     {"github.com/lib/pq", "github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/stdlib", migrations},
		"sqllocktest":        {module + "/internal/test/dbtest", "github.com/lib/pq", "github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql", fsnotify},
	} {
		deps, ok := dependencies(t)[pkg]
		if !ok {
			t.Errorf("there is no package %s", pkg)
		}
		for _, dep := range deps {
			if slices.Contains(forbidden, dep) {
				t.Errorf("%s links %s", pkg, dep)
			}
		}
	}
}

// TestUnusedMethodsAreNotLinked holds that nothing which Open links calls a method whose name the linker
// does not know. For its sake the linker would keep all exported methods of all types of the application.
func TestUnusedMethodsAreNotLinked(t *testing.T) {
	t.Parallel()
	check.Long(t)
	dir := t.TempDir()
	main := filepath.Join(dir, "main.go")
	must(t, os.WriteFile(main, []byte(`package main
import (
	"github.com/sqllock/sqllock/drivers/mysqllock"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/drivers/pqlock"
	"github.com/sqllock/sqllock/migrations"
)
func main() {
	pgxlock.Open(nil, "", &pgxlock.Options{Wake: true, Migrate: migrations.Up})
	pqlock.Open(nil, "", nil)
	mysqllock.Open(nil, "", nil)
}`), 0o600))
	out := check.Value(exec.CommandContext(t.Context(), "go", "build", "-ldflags=-dumpdep", "-o", filepath.Join(dir, "main"), main).CombinedOutput())(t)
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "<ReflectMethod>") {
			t.Error(line)
		}
	}
}

// TestNoObserverIsLinked holds that an application links a library for metrics or traces only if it
// imports the module that uses it: no package of this module links any, nor does go.mod require one.
func TestNoObserverIsLinked(t *testing.T) {
	t.Parallel()
	mod := check.Value(os.ReadFile("go.mod"))(t)
	all := []string{string(mod)}
	for _, deps := range dependencies(t) {
		all = append(all, deps...)
	}
	slices.Sort(all)
	for _, one := range slices.Compact(all) {
		for _, forbidden := range []string{"opentelemetry", "prometheus", module + "/monitor/otel", module + "/monitor/dashboard"} {
			if strings.Contains(one, forbidden) {
				t.Errorf("%s in %s", forbidden, one)
			}
		}
	}
}

// TestThePageIsLinkedByItsUsersAlone holds that an application which does not import the page links
// nothing of it, nor the server and the templates that it needs.
func TestThePageIsLinkedByItsUsersAlone(t *testing.T) {
	t.Parallel()
	parts := []string{module + "/monitor/page", module + "/internal/listing", "html/template"}
	for pkg, deps := range dependencies(t) {
		if pkg == "monitor/page" || strings.HasPrefix(pkg, "internal/listing") || strings.HasPrefix(pkg, "cmd/sqllock/internal/cli") || strings.HasPrefix(pkg, "cmd/") {
			continue
		}
		for _, dep := range deps {
			if slices.Contains(parts, dep) {
				t.Errorf("%s links %s", pkg, dep)
			}
		}
	}
}

// isExternal reports whether a package is not of the standard library, whose paths have no
// dot in their first element.
func isExternal(path string) bool {
	host, _, _ := strings.Cut(path, "/")
	return strings.Contains(host, ".")
}

// relative returns the directory of a package of this module, or the path of another one.
func relative(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// An importRow is a line of testdata/imports.txt.
type importRow struct {
	pkg     string
	allowed []string
}

func readImportRows(t *testing.T) (rows []importRow) {
	t.Helper()
	text := check.Value(os.ReadFile("testdata/imports.txt"))(t)
	for line := range strings.Lines(string(text)) {
		pkg, allowed, ok := strings.Cut(line, ":")
		if ok && !strings.HasPrefix(line, "#") {
			rows = append(rows, importRow{pkg, strings.Fields(allowed)})
		}
	}
	return rows
}

// rowOf returns what a package may import: what the first row that fits it says.
func rowOf(rows []importRow, pkg string) (allowed []string, ok bool) {
	for _, row := range rows {
		if matches([]string{row.pkg}, pkg) {
			return row.allowed, true
		}
	}
	return nil, false
}

// matches reports whether a path is one of those listed, or below one that ends in "/...".
func matches(list []string, path string) bool {
	return slices.ContainsFunc(list, func(one string) bool {
		root, below := strings.CutSuffix(one, "/...")
		return path == root || below && strings.HasPrefix(path, root+"/")
	})
}

var listed = sync.OnceValues(func() (map[string][]string, error) {
	lines, err := goList(runtime.GOOS, `{{.ImportPath}} {{join .Deps " "}}`)
	all := make(map[string][]string)
	for _, line := range lines {
		fields := strings.Fields(line)
		all[relative(fields[0])] = fields[1:]
	}
	return all, err
})

// dependencies returns what each package of this module links, on this system.
func dependencies(t *testing.T) map[string][]string {
	t.Helper()
	return check.Value(listed())(t)
}

// goList returns a line for each package of this module, on a system.
func goList(system, format string) ([]string, error) {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-f", format, "./...")
	cmd.Env = append(os.Environ(), "GOOS="+system)
	out, err := cmd.Output()
	return strings.Split(strings.TrimSpace(string(out)), "\n"), err
}
