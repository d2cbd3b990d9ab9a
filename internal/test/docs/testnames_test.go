package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/contract"
)

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

// TestTestingDocs checks that every test which docs/testing.md names exists.
func TestTestingDocs(t *testing.T) {
	t.Parallel()
	text := check.Value(os.ReadFile(filepath.Join("docs", "testing.md")))(t)
	tests := findTests(t)
	for _, match := range inBackticks.FindAllStringSubmatch(string(codeBlock.ReplaceAll(text, nil)), -1) {
		if name := match[1]; testName.MatchString(name) && !tests.have(name) {
			t.Errorf("there is no %s", name)
		}
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
