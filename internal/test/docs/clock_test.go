package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestSource_NoWallClock looks for instants that have lost their monotonic clock: a
// wait until one of them lasts for hours if the clock is set back by hours. No test can set
// the clock of the machine.
func TestSource_NoWallClock(t *testing.T) {
	t.Parallel()
	wall := []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano", "AddDate"}
	files := check.Value(filepath.Glob("*.go"))(t)
	engine := check.Value(filepath.Glob("internal/engine/*.go"))(t)
	for _, file := range append(files, engine...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed := check.Value(parser.ParseFile(set, file, nil, 0))(t)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(wall, s.Sel.Name) {
				t.Errorf("%v: %s", set.Position(s.Pos()), s.Sel.Name)
			}
			return true
		})
	}
}
