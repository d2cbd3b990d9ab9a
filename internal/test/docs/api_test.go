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

// TestAPI_RootExportsFewNames counts the names that a user has to choose from.
func TestAPI_RootExportsFewNames(t *testing.T) {
	t.Parallel()
	const most = 40
	names := topLevelNames(t, ".")
	if len(names) > most {
		t.Errorf("%d exported names, at most %d: %v", len(names), most, names)
	}
}

// topLevelNames returns the exported constants, variables, functions and types of a package.
func topLevelNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, file := range parsed(t, token.NewFileSet(), dir) {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names = append(names, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						names = append(names, s.Name.Name)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							names = append(names, name.Name)
						}
					}
				}
			}
		}
	}
	return names
}

// parsed returns the files of a package without what is not exported.
func parsed(t *testing.T, set *token.FileSet, dir string) (files []*ast.File) {
	t.Helper()
	paths := check.Value(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file := check.Value(parser.ParseFile(set, path, nil, parser.SkipObjectResolution))(t)
		ast.FileExports(file)
		files = append(files, file)
	}
	return files
}

// exported returns the exported declarations of a package, without comments and
// bodies, in alphabetical order.
func exported(t *testing.T, dir string) []string {
	t.Helper()
	set := token.NewFileSet()
	var decls []string
	for _, file := range parsed(t, set, dir) {
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
