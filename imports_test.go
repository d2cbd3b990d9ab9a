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
		module + "/dialect", module + "/internal/bounded", module + "/internal/group", module + "/internal/reentrant",
	}
	for pkg, allowed := range map[string][]string{
		".":                    root,
		"./dialect":            nil,
		"./internal/bounded":   nil,
		"./internal/reentrant": nil,
		"./cleanup":            append(root, module),
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", pkg).Output()
		must(t, err)
		self := module + strings.TrimPrefix(pkg, ".")
		for _, dep := range strings.Fields(string(out)) {
			if dep != self && !slices.Contains(allowed, dep) {
				t.Errorf("%s links %s", pkg, dep)
			}
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./migrations").Output()
	must(t, err)
	if slices.Contains(strings.Fields(string(out)), module) {
		t.Error("migrations links the root package")
	}
}
