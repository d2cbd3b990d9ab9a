package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/program"
)

var (
	goBlock     = regexp.MustCompile("(?s)```go\n(.*?)```")
	declaration = regexp.MustCompile(`^(//.*\n)*(func|type) `)
	comment     = regexp.MustCompile(`//.*`)
	qualifier   = regexp.MustCompile(`\b([a-z]\w*)\.[A-Z]`)
)

// documentPackages are what the code of the documents may import.
var documentPackages = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "log": "log", "mysql": "github.com/go-sql-driver/mysql",
	"os": "os", "signal": "os/signal", "syscall": "syscall", "sql": "database/sql", "driver": "database/sql/driver", "stdlib": "github.com/jackc/pgx/v5/stdlib", "sync": "sync",
	"sqlx": "github.com/jmoiron/sqlx", "pgxpool": "github.com/jackc/pgx/v5/pgxpool", "pgx": "github.com/jackc/pgx/v5",
	"synctest": "testing/synctest", "testing": "testing", "time": "time", "slog": "log/slog",
	"rand": "math/rand/v2", "sqllock": module, "virtual": module + "/internal/test/virtual",
}

// documentNames are what the code of the documents takes for granted.
const documentNames = `package documents

import (
	"context"
	"database/sql"
	"net/http"
	"sync"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/leader"
)

// A Storage checks fencing tokens.
type Storage struct {
	mu      sync.Mutex
	highest int64
	value   string
}

var (
	ctx        context.Context
	db         *sql.DB
	dsn        string
	repository *sqllock.Repository
	registry   *sqllock.Registry
	lease      *sqllock.Lease
	elector    *leader.Elector
	storage    *Storage
	key        = "orders/42"
	items      []string
	mux        *http.ServeMux
	w          http.ResponseWriter
	r          *http.Request
)

func work(context.Context) error                  { return nil }
func sendInvoices(context.Context) error          { return nil }
func migrate(context.Context) error               { return nil }
func process(context.Context, string) error       { return nil }
func serve(http.ResponseWriter, *http.Request)    {}
func requireOperator(h http.Handler) http.Handler { return h }
`

// TestDocs_GoCompiles compiles the Go code of the README and of docs. A block is the body of a function, or
// declarations. One that needs another library stands in a program or a test that is compiled where that
// library is, word for word.
func TestDocs_GoCompiles(t *testing.T) {
	t.Parallel()
	check.Long(t)
	pages := check.Value(filepath.Glob("docs/*.md"))(t)
	compiled, files := allGoFiles(t), map[string]string{"names.go": documentNames}
	for _, page := range append(pages, "README.md", "internal/test/README.md") {
		text := check.Value(os.ReadFile(page))(t)
		for i, block := range goBlock.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(block[1], "defer lease.Unlock(") {
				t.Errorf("%s: a deferred Unlock drops ErrLockLost: %s", page, block[1])
			}
			if !strings.Contains(compiled, unspaced(block[1])) {
				files[fmt.Sprintf("%s_%d.go", strings.ReplaceAll(strings.TrimSuffix(page, ".md"), "/", "_"), i)] = fileOf(block[1], len(files))
			}
		}
	}
	if len(files) < 10 {
		t.Fatalf("%d files", len(files))
	}
	out, err := buildOverlay(t, "internal/documents", files)
	if err == nil {
		return
	}
	for line := range strings.Lines(string(out)) {
		// A document shows what a call returns, not always what is done with it.
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "declared and not used") {
			t.Error(strings.TrimSpace(line))
		}
	}
}

// buildOverlay compiles files as if they were those of a directory of this module.
func buildOverlay(t *testing.T, directory string, files map[string]string) (out []byte, err error) {
	t.Helper()
	directory = check.Value(filepath.Abs(directory))(t)
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		overlay.Replace[filepath.Join(directory, name)] = path
	}
	list := check.Value(json.Marshal(overlay))(t)
	path := filepath.Join(dir, "overlay.json")
	must(t, os.WriteFile(path, list, 0o600))
	// Without -e the compiler stops after ten errors.
	arguments := append([]string{"build", "-gcflags=-e", "-overlay=" + path}, program.BuildFlags(t)...)
	return exec.CommandContext(t.Context(), "go", append(arguments, directory)...).CombinedOutput() //nolint:gosec // our own program
}

// fileOf returns the file for a block of code.
func fileOf(block string, number int) string {
	if program, ok := strings.CutPrefix(block, "package main\n"); ok {
		return "package documents\n" + program
	}
	var file strings.Builder
	file.WriteString("package documents\n\n")
	var imported []string
	for _, match := range qualifier.FindAllStringSubmatch(comment.ReplaceAllString(block, ""), -1) {
		name := match[1]
		path, known := documentPackages[name]
		for _, place := range []string{"", "adapters/", "drivers/", "monitor/", "sync/"} {
			if info, err := os.Stat(place + name); !known && err == nil && info.IsDir() {
				path, known = module+"/"+place+name, true
			}
		}
		if known && !slices.Contains(imported, path) {
			imported = append(imported, path)
			fmt.Fprintf(&file, "import %s %q\n", name, path)
		}
	}
	if declaration.MatchString(block) {
		file.WriteString(block)
	} else {
		fmt.Fprintf(&file, "\nfunc block%d() error {\n%s\nreturn nil\n}\n", number, block)
	}
	return file.String()
}

// allGoFiles returns the Go code of the repository, of all its modules.
func allGoFiles(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	eachGoFile(t, func(path string) {
		text := check.Value(os.ReadFile(path))(t)
		all.WriteString(unspaced(string(text)))
	})
	return all.String()
}

// unspaced returns code on one line: a block of a document is not indented.
func unspaced(code string) string { return strings.Join(strings.Fields(code), " ") + " " }
