package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

var (
	modelRow  = regexp.MustCompile("(?m)^\\| `([A-Z]\\w*)` \\| ([a-z, ]+) \\| (`[^|]+`) \\|$")
	modelStep = regexp.MustCompile(`(?m)^(?:inline )?([A-Z]\w*)(?:\(.*\) \{|:)`)
)

// TestModelSteps checks that the table of dev/model/README.md has each step of the models in dev/model once, with functions
// that exist.
func TestModelSteps(t *testing.T) {
	t.Parallel()
	functions, steps := functionsOf(t, "engine", "fair", "locktable", "poll", "rwlock", "seats", "semaphore"), stepsOfModels(t)
	page := check.Value(os.ReadFile("dev/model/README.md"))(t)
	for _, row := range modelRow.FindAllStringSubmatch(string(page), -1) {
		for model := range strings.SplitSeq(row[2], ", ") {
			if step := model + ": " + row[1]; !steps[step] {
				t.Errorf("there is no step %s, or its row stands twice", step)
			} else {
				delete(steps, step)
			}
		}
		for _, function := range inBackticks.FindAllStringSubmatch(row[3], -1) {
			if !functions[function[1]] {
				t.Errorf("%s: there is no function %s", row[1], function[1])
			}
		}
	}
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		t.Errorf("dev/model/README.md has no row for the step %s", step)
	}
}

// stepsOfModels returns the labels and inlines of the models that begin with a capital letter.
func stepsOfModels(t *testing.T) map[string]bool {
	t.Helper()
	files := check.Value(filepath.Glob("dev/model/*.pml"))(t)
	steps := make(map[string]bool)
	for _, file := range files {
		text := check.Value(os.ReadFile(file))(t)
		for _, match := range modelStep.FindAllStringSubmatch(string(text), -1) {
			steps[strings.TrimSuffix(filepath.Base(file), ".pml")+": "+match[1]] = true
		}
	}
	if len(steps) < 30 {
		t.Errorf("found %d steps: is their form another one?", len(steps))
	}
	return steps
}

// functionsOf returns the functions and methods of packages, as package.Func or package.Type.Method.
func functionsOf(t *testing.T, packages ...string) map[string]bool {
	t.Helper()
	functions := make(map[string]bool)
	eachGoFile(t, func(path string) {
		pkg := filepath.Base(filepath.Dir(path))
		if !slices.Contains(packages, pkg) || strings.HasSuffix(path, "_test.go") {
			return
		}
		file := check.Value(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			switch {
			case ok && f.Recv != nil:
				functions[pkg+"."+receiver(f)+"."+f.Name.Name] = true
			case ok:
				functions[pkg+"."+f.Name.Name] = true
			}
		}
	})
	return functions
}
