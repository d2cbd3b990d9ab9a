package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

var (
	selected   = regexp.MustCompile(`\b(\w+)\.([A-Z]\w*)`)
	errorNames = regexp.MustCompile(`(?:^|[^.\w])(Err[A-Z]\w*)`)
)

// receivers are the types of the names that docs/coming-from.md uses for values.
var receivers = map[string]string{
	"registry": "sqllock.Registry", "repository": "sqllock.Repository", "lock": "sqllock.JdbcLock", "lease": "sqllock.Lease",
	"elector": "leader.Elector", "permits": "semaphore.Semaphore", "rw": "rwlock.Lock",
}

// TestDocs_ComingFromNamesOurs checks that each of our names in the tables of docs/coming-from.md is exported.
func TestDocs_ComingFromNamesOurs(t *testing.T) {
	t.Parallel()
	page := check.Value(os.ReadFile(filepath.Join("docs", "coming-from.md")))(t)
	named := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if len(cells) < 2 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, code := range inBackticks.FindAllStringSubmatch(strings.Join(cells[1:], " "), -1) {
			for _, name := range selected.FindAllStringSubmatch(code[1], -1) {
				named++
				if !inAPI(t, name[1], name[2]) {
					t.Errorf("there is no %s: %s", name[0], line)
				}
			}
		}
		for _, code := range inBackticks.FindAllStringSubmatch(cells[1], -1) { // the next one may name an error of theirs
			for _, name := range errorNames.FindAllStringSubmatch(code[1], -1) {
				named++
				if !inAPI(t, "sqllock", name[1]) {
					t.Errorf("there is no %s: %s", name[1], line)
				}
			}
		}
	}
	if named < 60 {
		t.Errorf("found %d names: is the form of the page another one?", named)
	}
}

// inAPI reports whether the API has a name: a method of a receiver, a field of a struct of the root, or
// a name of a package. TestAPI compares the API with the files in testdata/api.
func inAPI(t *testing.T, of, name string) bool {
	t.Helper()
	if of == "time" || of == "errors" { // of the standard library
		return true
	}
	if method, ok := receivers[of]; ok {
		pkg, receiver, _ := strings.Cut(method, ".")
		return regexp.MustCompile(`(?m)^func \(\w+ \*?` + receiver + `\) ` + name + `\(`).MatchString(apiOf(t, pkg))
	}
	if strings.ToLower(of) == of {
		return regexp.MustCompile(`(?m)^(?:func |type |\t|const |var )` + name + `\b`).MatchString(apiOf(t, of))
	}
	_, fields, _ := strings.Cut(apiOf(t, "sqllock"), "\ntype "+of+" struct {")
	fields, _, _ = strings.Cut(fields, "\n}")
	return regexp.MustCompile(`(?m)^\t` + name + `\b`).MatchString(fields)
}

func apiOf(t *testing.T, pkg string) string {
	t.Helper()
	text := check.Value(os.ReadFile(filepath.Join("testdata", "api", pkg+".txt")))(t)
	return string(text)
}
