package sqllock_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/testmain"
)

// TestMain checks that no test or example leaves a goroutine behind.
func TestMain(m *testing.M) { testmain.Run(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const module = "github.com/sqllock/sqllock"

// external is what the packages that ship may import beside the standard library and the
// module. Where a name ends in "/..." it may be any package below.
var external = map[string][]string{
	".":                       {"github.com/jmoiron/sqlx"},
	"dialect":                 nil,
	"internal/batch":          nil,
	"internal/bounded":        nil,
	"internal/engine":         nil,
	"internal/expiring":       nil,
	"internal/failure":        nil,
	"internal/locktable":      {"github.com/jmoiron/sqlx"},
	"internal/lru":            nil,
	"internal/reentrant":      nil,
	"internal/seats":          nil,
	"adapters/internal/named": nil,
	"adapters/certmagiclock":  nil,
	"cleanup":                 nil,
	"adapters/gocronlock":     nil,
	"adapters/gooselock":      nil,
	"adapters/httplock":       nil,
	"sync/job":                nil,
	"sync/leader":             nil,
	"observe":                 nil,
	"internal/listing":        nil,
	"internal/printable":      nil,
	"monitor/page":            nil,
	"sync/rwlock":             nil,
	"sync/semaphore":          nil,
	"migrations":              {"github.com/golang-migrate/migrate/v4/..."},
	"sqllocktest":             nil,
	// It speaks to the server through pgconn, whichever driver the application has.
	"drivers/notify": {"github.com/jackc/pgx/v5/pgconn/...", "github.com/jackc/pgx/v5/pgproto3"},

	"drivers/pgxlock":               nil,
	"drivers/pqlock":                nil,
	"drivers/mysqllock":             nil,
	"drivers/sqlitelock":            nil,
	"internal/session":              {"github.com/jmoiron/sqlx"},
	"internal/session/pgxdriver":    {"github.com/jackc/pgx/v5/..."},
	"internal/session/pqdriver":     {"github.com/lib/pq"},
	"internal/session/mysqldriver":  {"github.com/go-sql-driver/mysql"},
	"internal/session/sqlitedriver": {"modernc.org/sqlite/..."},

	// The screen of the command, which an application that imports the library neither links nor downloads.
	"cmd/sqllock/internal/top": {"charm.land/bubbletea/v2", "github.com/charmbracelet/x/ansi", "github.com/spf13/cobra", "golang.org/x/term"},
}

// TestImports holds the import graph of docs/design.md: each package imports only what
// stands in its row of dev/tools/graph/imports.txt, which `make graph` checks for the other
// systems too, and in external.
func TestImports(t *testing.T) {
	t.Parallel()
	rows := readImportRows(t)
	for _, line := range goList(t, `{{.ImportPath}} {{join .Imports " "}}`, "./...") {
		fields := strings.Fields(line)
		pkg := relative(fields[0])
		allowed, ok := rowOf(rows, pkg)
		if !ok {
			t.Errorf("%s has no row in dev/tools/graph/imports.txt", pkg)
			continue
		}
		for _, imported := range fields[1:] {
			switch own := relative(imported); {
			case own != imported:
				if !matches(allowed, own) {
					t.Errorf("%s imports %s", pkg, own)
				}
			case isExternal(imported):
				if limits, ships := external[pkg]; ships && !matches(limits, imported) {
					t.Errorf("%s imports %s", pkg, imported)
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
		"internal/batch", "internal/bounded", "internal/engine", "internal/expiring", "internal/failure", "internal/jitter", "internal/locktable", "internal/lru",
		"internal/reentrant", "internal/streak", "internal/transaction",
	}
	for _, dep := range strings.Fields(goList(t, `{{join .Deps " "}}`, ".")[0]) {
		if isExternal(dep) && !slices.Contains(allowed, relative(dep)) {
			t.Errorf("sqllock links %s", dep)
		}
	}
}

// TestNoLinks holds what a package must not link, not even through others.
func TestNoLinks(t *testing.T) {
	t.Parallel()
	const pgx, pq, mysql, sqlite = "github.com/jackc/pgx/v5", "github.com/lib/pq", "github.com/go-sql-driver/mysql", "modernc.org/sqlite"
	for pkg, forbidden := range map[string][]string{
		"./drivers/pgxlock":    {pq, mysql, sqlite},
		"./drivers/pqlock":     {pgx, mysql, sqlite}, // but pgconn, the lower half of pgx, for wake-ups
		"./drivers/mysqllock":  {pgx, pgx + "/pgconn", pq, sqlite},
		"./drivers/sqlitelock": {pgx, pgx + "/pgconn", pq, mysql},
		"./migrations":         {module},
		"./drivers/notify":     {"github.com/lib/pq", "github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/stdlib", module + "/migrations"},
		"./sqllocktest":        {module + "/internal/test/dbtest", "github.com/lib/pq", "github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql"},
	} {
		for _, dep := range strings.Fields(goList(t, `{{join .Deps " "}}`, pkg)[0]) {
			if slices.Contains(forbidden, dep) {
				t.Errorf("%s links %s", pkg, dep)
			}
		}
	}
}

// TestNoObserverIsLinked holds that an application links a library for metrics or traces only if it
// imports the module that uses it: no package of this module links any, nor does go.mod require one.
func TestNoObserverIsLinked(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("go.mod")
	must(t, err)
	all := append(goList(t, "{{.ImportPath}}", "-deps", "./..."), string(mod))
	for _, one := range all {
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
	for _, line := range goList(t, `{{.ImportPath}} {{join .Deps " "}}`, "./...") {
		fields := strings.Fields(line)
		pkg := relative(fields[0])
		if pkg == "monitor/page" || strings.HasPrefix(pkg, "internal/listing") || strings.HasPrefix(pkg, "cmd/sqllock/internal/cli") || strings.HasPrefix(pkg, "cmd/") {
			continue
		}
		for _, dep := range fields[1:] {
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

// An importRow is a line of dev/tools/graph/imports.txt.
type importRow struct {
	pkg     string
	allowed []string
}

func readImportRows(t *testing.T) []importRow {
	t.Helper()
	text, err := os.ReadFile("dev/tools/graph/imports.txt")
	must(t, err)
	var rows []importRow
	for line := range strings.Lines(string(text)) {
		pkg, allowed, ok := strings.Cut(line, ":")
		if ok && !strings.HasPrefix(line, "#") {
			rows = append(rows, importRow{pkg, strings.Fields(allowed)})
		}
	}
	return append(rows, readImportExceptions(t)...)
}

// readImportExceptions returns the imports that dev/tools/graph/exceptions.txt allows.
func readImportExceptions(t *testing.T) []importRow {
	t.Helper()
	text, err := os.ReadFile("dev/tools/graph/exceptions.txt")
	must(t, err)
	var rows []importRow
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "imports" {
			rows = append(rows, importRow{fields[1], fields[2:3]})
		}
	}
	return rows
}

// rowOf returns what a package may import: what the first row that fits it says, and its
// exceptions.
func rowOf(rows []importRow, pkg string) (allowed []string, ok bool) {
	for _, row := range rows {
		if !ok && matches([]string{row.pkg}, pkg) || ok && row.pkg == pkg {
			allowed, ok = append(slices.Clone(allowed), row.allowed...), true
		}
	}
	return allowed, ok
}

// matches reports whether a path is one of those listed, or below one that ends in "/...".
func matches(list []string, path string) bool {
	return slices.ContainsFunc(list, func(one string) bool {
		root, below := strings.CutSuffix(one, "/...")
		return path == root || below && strings.HasPrefix(path, root+"/")
	})
}

// goList returns a line for each package.
func goList(t *testing.T, format string, packages ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-f", format}, packages...)...).Output()
	must(t, err)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
