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
	"strconv"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/contract"
)

const promisesFile = "internal/test/docs/promises.tsv"

// TestPromises checks that what promises.tsv names exists: the exported name whose comment makes the promise, and the
// test that shows it. The words of the promise are for people.
func TestPromises(t *testing.T) {
	t.Parallel()
	text := check.Value(os.ReadFile(promisesFile))(t)
	names, tests, simulated := documentedNames(t, "sqllock", "semaphore", "rwlock", "leader", "job", "cleanup", "migrations",
		"pgxlock", "pqlock", "mysqllock", "sqlitelock"), testsByPackage(t), simulatedNames(t)
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
		if !names[of] {
			t.Errorf("%s has no comment, or is no exported name: %q", of, words)
		}
		if promise := of + words; seen[promise] {
			t.Errorf("%s: %q stands twice", of, words)
		} else {
			seen[promise] = true
		}
		where, name, _ := strings.Cut(shown, ": ")
		switch {
		case where == "contract" && !slices.Contains(contract.Names(), name),
			where == "simulation" && !simulated[name],
			where != "contract" && where != "simulation" && !tests[shown]:
			t.Errorf("there is no %s", shown)
		}
	}
	if len(seen) < 200 {
		t.Errorf("%d promises", len(seen))
	}
}

// simulatedNames returns what the simulation calls a violation, and what its plans have, such as Plan.Drift.
func simulatedNames(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	for _, path := range check.Value(filepath.Glob("internal/test/simulation/*.go"))(t) {
		ast.Inspect(check.Value(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "violated" {
					if kind, err := strconv.Unquote(textOf(n.Args[0])); err == nil {
						names[kind] = true
					}
				}
			case *ast.TypeSpec:
				if plan, ok := n.Type.(*ast.StructType); ok && n.Name.Name == "Plan" {
					for _, field := range plan.Fields.List {
						for _, name := range field.Names {
							names["Plan."+name.Name] = true
						}
					}
				}
			}
			return true
		})
	}
	return names
}

// testsByPackage returns the tests of all modules, with the names of their directories.
func testsByPackage(t *testing.T) map[string]bool {
	t.Helper()
	tests := make(map[string]bool)
	eachTest(t, func(path, test, _ string) { tests[filepath.Base(filepath.Dir(path))+": "+test] = true })
	return tests
}

// documentedNames returns what has a doc comment in some packages: a package, its exported names, and the methods and
// fields of these.
func documentedNames(t *testing.T, packages ...string) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	eachGoFile(t, func(path string) {
		if dir := filepath.Base(filepath.Dir(path)); strings.HasSuffix(path, "_test.go") || dir != "." && !slices.Contains(packages, dir) {
			return
		}
		file := check.Value(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution))(t)
		pkg := file.Name.Name
		if !slices.Contains(packages, pkg) {
			return
		}
		add := func(name string, docs ...*ast.CommentGroup) {
			for _, doc := range docs {
				names[name] = names[name] || doc.Text() != ""
			}
		}
		add(pkg, file.Doc)
		ast.FileExports(file)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d) + "." + name
				}
				add(pkg+"."+name, d.Doc)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addSpec(add, pkg, d, spec)
				}
			}
		}
	})
	return names
}

// addSpec adds a type and its fields, or constants and variables.
func addSpec(add func(string, ...*ast.CommentGroup), pkg string, decl *ast.GenDecl, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		add(pkg+"."+s.Name.Name, decl.Doc, s.Doc)
		if fields, ok := s.Type.(*ast.StructType); ok {
			for _, field := range fields.Fields.List {
				for _, name := range field.Names {
					add(pkg+"."+s.Name.Name+"."+name.Name, field.Doc)
				}
			}
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			add(pkg+"."+name.Name, s.Doc, decl.Doc)
		}
	}
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

var (
	codeBlock     = regexp.MustCompile("(?ms)^```.*?^```$")
	inBackticks   = regexp.MustCompile("`([^`]+)`")
	testName      = regexp.MustCompile(`^(?:Test|Fuzz)[A-Z]\w*(?:/.+)?$`)
	testFunction  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	anotherRow    = regexp.MustCompile(`\b4[a-f] \d+\b|\bthe same test\b|\bthe two of \d+\b`)
	notApplicable = "not applicable"
)

// TestSpringDocs checks that every test which internal/test/contract/SPRING.md names
// exists, and that every row of a table that has a column for tests names one.
func TestSpringDocs(t *testing.T) {
	t.Parallel()
	text := check.Value(os.ReadFile(filepath.Join("internal", "test", "contract", "SPRING.md")))(t)
	text = codeBlock.ReplaceAll(text, nil)
	tests, named := findTests(t), 0
	for _, match := range inBackticks.FindAllStringSubmatch(string(text), -1) {
		name := match[1]
		if promise, ok := strings.CutPrefix(name, "contract: "); ok {
			named++
			if promise != "Lease/…" && !slices.Contains(contract.Names(), promise) {
				t.Errorf("internal/test/contract has no test %s", promise)
			}
		} else if testName.MatchString(name) {
			named++
			if !tests.have(name) {
				t.Errorf("there is no %s", name)
			}
		}
	}
	if named < 150 {
		t.Errorf("found %d names of tests: is the form of the page another one?", named)
	}
	for _, row := range rowsWithTests(string(text)) {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		last := cells[len(cells)-1]
		if !strings.Contains(row, notApplicable) && !strings.Contains(last, "`") && !anotherRow.MatchString(last) {
			t.Errorf("no test: %s", row)
		}
	}
}

// TestTestingDocs checks that every test which the pages for contributors name exists.
func TestTestingDocs(t *testing.T) {
	t.Parallel()
	tests, named := findTests(t), 0
	for _, page := range []string{"internal/test/README.md", "internal/test/coverage.md", "dev/model/README.md", "dev/tools/mutants/README.md"} {
		text := check.Value(os.ReadFile(page))(t)
		for _, match := range inBackticks.FindAllStringSubmatch(string(codeBlock.ReplaceAll(text, nil)), -1) {
			name := match[1]
			if !testName.MatchString(name) {
				continue
			}
			if named++; !tests.have(name) {
				t.Errorf("%s: there is no %s", page, name)
			}
		}
	}
	if named < 50 {
		t.Errorf("%d tests are named", named)
	}
}

// rowsWithTests returns the rows of the tables whose last column is "test".
func rowsWithTests(page string) []string {
	var rows []string
	within := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasSuffix(line, "| test |"):
			within = true
		case !strings.HasPrefix(line, "|"):
			within = false
		case within && !strings.HasPrefix(line, "|---"):
			rows = append(rows, line)
		}
	}
	return rows
}

// A testIndex has the text of the test files that declare a test, by its name.
type testIndex map[string]string

// eachTest calls do for each test of all modules, whatever their build tags, with the path and the text of its file.
func eachTest(t *testing.T, do func(path, test, text string)) {
	t.Helper()
	eachGoFile(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		text := check.Value(os.ReadFile(path))(t)
		for _, match := range testFunction.FindAllStringSubmatch(string(text), -1) {
			do(path, match[1], string(text))
		}
	})
}

func findTests(t *testing.T) testIndex {
	t.Helper()
	index := make(testIndex)
	eachTest(t, func(_, test, text string) { index[test] += text })
	return index
}

// have reports whether there is a test, and if the name has two parts, whether the file
// that declares it has the second one as a string: the name of a subtest, a row of a
// table of tests, or a script.
func (index testIndex) have(name string) bool {
	function, sub, _ := strings.Cut(name, "/")
	text, ok := index[function]
	switch {
	case !ok || sub == "" || strings.HasSuffix(sub, "…"):
		return ok
	case function == "TestScripts":
		_, err := os.Stat(filepath.Join("cmd", "sqllock", "internal", "cli", "testdata", "script", sub+".txtar"))
		return err == nil
	default:
		return strings.Contains(text, `"`+sub+`"`)
	}
}
