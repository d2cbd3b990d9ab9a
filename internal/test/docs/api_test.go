package docs_test

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/golden"
)

// TestAPI keeps what each package exports in testdata/api, so that a change shows
// in review.
func TestAPI(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{
		"sqllock": ".", "dialect": "dialect", "migrations": "migrations", "cleanup": "cleanup", "notify": "drivers/notify", "leader": "sync/leader",
		"pgxlock": "drivers/pgxlock", "pqlock": "drivers/pqlock", "mysqllock": "drivers/mysqllock", "sqlitelock": "drivers/sqlitelock",
		"sqllocktest": "sqllocktest", "job": "sync/job", "gocronlock": "adapters/gocronlock", "gooselock": "adapters/gooselock",
		"certmagiclock": "adapters/certmagiclock", "httplock": "adapters/httplock", "observe": "observe", "page": "monitor/page", "semaphore": "sync/semaphore", "rwlock": "sync/rwlock",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(exported(t, dir), "\n\n") + "\n"
			golden.Check(t, filepath.Join("testdata", "api", name+".txt"), got)
		})
	}
}

// exported returns the exported declarations of a package, without comments and
// bodies, in alphabetical order.
func exported(t *testing.T, dir string) (decls []string) {
	t.Helper()
	set := token.NewFileSet()
	for _, path := range check.Value(filepath.Glob(filepath.Join(dir, "*.go")))(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file := check.Value(parser.ParseFile(set, path, nil, parser.SkipObjectResolution))(t)
		ast.FileExports(file)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.GenDecl:
				if d.Tok == token.IMPORT {
					continue
				}
			case *ast.FuncDecl:
				if d.Recv != nil && !ast.IsExported(receiver(d)) {
					continue
				}
				d.Body = nil
			}
			var text bytes.Buffer
			must(t, format.Node(&text, set, decl))
			decls = append(decls, text.String())
		}
	}
	slices.Sort(decls)
	return decls
}

func receiver(method *ast.FuncDecl) string {
	expr := method.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	if generic, ok := expr.(*ast.IndexExpr); ok {
		expr = generic.X
	}
	if ident, ok := expr.(*ast.Ident); ok {
		return ident.Name
	}
	return ""
}
