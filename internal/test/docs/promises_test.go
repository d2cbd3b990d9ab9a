package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/contract"
)

const promisesFile = "internal/test/docs/promises.tsv"

// TestPromises checks that the comments of the packages say what promises.tsv quotes, once each, and that
// the test which shows it exists.
func TestPromises(t *testing.T) {
	t.Parallel()
	text := check.Value(os.ReadFile(promisesFile))(t)
	comments, tests := commentsOf(t, "sqllock", "semaphore", "rwlock", "leader", "job", "cleanup", "migrations",
		"pgxlock", "pqlock", "mysqllock", "sqlitelock"), testsByPackage(t)
	simulation := check.Value(os.ReadFile("internal/test/simulation/doc.go"))(t)
	seen := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			t.Errorf("%q is no promise", line)
			continue
		}
		of, words, shown := fields[0], fields[1], fields[2]
		if comment, ok := comments[of]; !ok || !strings.Contains(comment, words) {
			t.Errorf("the comment of %s does not say %q", of, words)
		}
		if promise := of + words; seen[promise] {
			t.Errorf("%s: %q stands twice", of, words)
		} else {
			seen[promise] = true
		}
		switch where, name, _ := strings.Cut(shown, ": "); where {
		case "contract":
			if !slices.Contains(contract.Names(), name) {
				t.Errorf("the contract has no part %s", name)
			}
		case "simulation":
			if !strings.Contains(plainText(string(simulation)), name) {
				t.Errorf("the simulation does not say that it checks %q", name)
			}
		default:
			if !tests[where+": "+name] {
				t.Errorf("there is no %s", shown)
			}
		}
	}
	if len(seen) < 200 {
		t.Errorf("%d promises", len(seen))
	}
}

// testsByPackage returns the tests of all modules, with the names of their directories.
func testsByPackage(t *testing.T) map[string]bool {
	t.Helper()
	tests := make(map[string]bool)
	eachTest(t, func(path, test, _ string) { tests[filepath.Base(filepath.Dir(path))+": "+test] = true })
	return tests
}

// commentsOf returns the doc comments of some packages, on one line each: of a package, of its exported
// names, and of the methods and fields of these.
func commentsOf(t *testing.T, packages ...string) map[string]string {
	t.Helper()
	comments := make(map[string]string)
	eachGoFile(t, func(path string) {
		if dir := filepath.Base(filepath.Dir(path)); strings.HasSuffix(path, "_test.go") || dir != "." && !slices.Contains(packages, dir) {
			return
		}
		file := check.Value(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution))(t)
		if !slices.Contains(packages, file.Name.Name) {
			return
		}
		add := func(name string, docs ...*ast.CommentGroup) {
			for _, doc := range docs {
				comments[name] += plainText(doc.Text())
			}
		}
		add(file.Name.Name, file.Doc)
		ast.FileExports(file)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d) + "." + name
				}
				add(file.Name.Name+"."+name, d.Doc)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addSpec(add, file.Name.Name, d, spec)
				}
			}
		}
	})
	return comments
}

// addSpec adds the comments of a type and its fields, or of constants and variables.
func addSpec(add func(string, ...*ast.CommentGroup), pkg string, decl *ast.GenDecl, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		add(pkg+"."+s.Name.Name, decl.Doc, s.Doc)
		if fields, ok := s.Type.(*ast.StructType); ok {
			for _, field := range fields.Fields.List {
				for _, name := range field.Names {
					add(pkg+"."+s.Name.Name+"."+name.Name, field.Doc)
					add(pkg+"."+s.Name.Name, field.Doc)
				}
			}
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			add(pkg+"."+name.Name, s.Doc)
			if s.Doc == nil {
				add(pkg+"."+name.Name, decl.Doc)
			}
		}
	}
}

var lineStart = regexp.MustCompile(`(?m)^//`)

// plainText returns a comment on one line.
func plainText(comment string) string {
	return strings.Join(strings.Fields(lineStart.ReplaceAllString(comment, "")), " ") + " "
}

// eachGoFile calls do for all Go files of the repository.
func eachGoFile(t *testing.T, do func(path string)) {
	t.Helper()
	must(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".go" {
			do(path)
		}
		return err
	}))
}
