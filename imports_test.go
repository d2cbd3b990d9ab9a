package sqllock_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImports keeps the import graph of docs/design.md: what an application
// links when it embeds a package.
func TestImports(t *testing.T) {
	t.Parallel()
	const module = "github.com/sqllock/sqllock"
	root := []string{
		"github.com/jmoiron/sqlx", "github.com/jmoiron/sqlx/reflectx",
		module + "/dialect", module + "/internal/bounded", module + "/internal/expiring", module + "/internal/batch", module + "/internal/lru", module + "/internal/reentrant",
		module + "/internal/stmtcache",
	}
	for pkg, allowed := range map[string][]string{
		".":                    root,
		"./dialect":            nil,
		"./internal/bounded":   nil,
		"./internal/expiring":  nil,
		"./internal/reentrant": nil,
		"./cleanup":            append(root, module),
	} {
		self := module + strings.TrimPrefix(pkg, ".")
		for _, dep := range deps(t, pkg) {
			if dep != self && !slices.Contains(allowed, dep) {
				t.Errorf("%s links %s", pkg, dep)
			}
		}
	}
	for pkg, forbidden := range map[string][]string{
		"./migrations": {module},
		// It speaks to the server through pgconn, whichever driver the application has.
		"./notify": {"github.com/lib/pq", "github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/stdlib", module + "/migrations"},
	} {
		for _, dep := range deps(t, pkg) {
			if slices.Contains(forbidden, dep) {
				t.Errorf("%s links %s", pkg, dep)
			}
		}
	}
}

// deps returns what a package links beside the standard library, itself included.
func deps(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", pkg).Output()
	must(t, err)
	return strings.Fields(string(out))
}
