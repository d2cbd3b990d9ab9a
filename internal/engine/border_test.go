package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestBorder holds how many exported names the engine has: types, functions, methods, fields, constants and variables.
// Each of them is one more thing that others may depend on.
func TestBorder(t *testing.T) {
	t.Parallel()
	files := check.Value(filepath.Glob("*.go"))(t)
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text := check.Value(os.ReadFile(file))(t)
		parsed := check.Value(parser.ParseFile(token.NewFileSet(), file, text, 0))(t)
		for _, decl := range parsed.Decls {
			names = append(names, exported(decl)...)
		}
	}
	const most = 51
	if len(names) > most {
		t.Errorf("%d exported names, want %d at most: %s", len(names), most, strings.Join(names, " "))
	}
}

// exported returns the exported names that a declaration makes.
func exported(decl ast.Decl) (names []string) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.IsExported() && (n.Recv == nil || receiverIsExported(n.Recv)) {
				names = append(names, n.Name.Name)
			}
			return false
		case *ast.TypeSpec:
			if n.Name.IsExported() {
				names = append(names, n.Name.Name)
			}
			return n.Name.IsExported()
		case *ast.ValueSpec:
			for _, name := range n.Names {
				if name.IsExported() {
					names = append(names, name.Name)
				}
			}
			return false
		case *ast.Field:
			for _, name := range n.Names {
				if name.IsExported() {
					names = append(names, name.Name)
				}
			}
			return false
		}
		return true
	})
	return names
}

func receiverIsExported(recv *ast.FieldList) bool {
	of := recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	name, ok := of.(*ast.Ident)
	return ok && name.IsExported()
}
