package docs_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// findingRow is a row of the table of findings/README.md: name, what was seen, and versions.
var findingRow = regexp.MustCompile("(?m)^\\| \\[([\\w-]+)\\]\\(([\\w-]+)\\.sh\\) \\| .+ \\| `(.+)` \\| (.+) \\| \\d{4}-\\d\\d-\\d\\d \\|$")

// TestFindings_TableTellsTheScripts: the table has each script, with a line that it expects to see, and with the
// versions that it pins. A comment at its beginning says what was expected and what was seen.
func TestFindings_TableTellsTheScripts(t *testing.T) {
	t.Parallel()
	page := string(check.Value(os.ReadFile("findings/README.md"))(t))
	scripts := make(map[string]string)
	for _, path := range check.Value(filepath.Glob("findings/*.sh"))(t) {
		if name := strings.TrimSuffix(filepath.Base(path), ".sh"); name != "common" {
			scripts[name] = string(check.Value(os.ReadFile(path))(t))
		}
	}
	for _, row := range findingRow.FindAllStringSubmatch(page, -1) {
		name, link, seen, versions := row[1], row[2], row[3], row[4]
		script, ok := scripts[name]
		if !ok || link != name {
			t.Errorf("%s: no such script, or it is linked as %s.sh", name, link)
			continue
		}
		delete(scripts, name)
		comment, rest, _ := strings.Cut(script, "\n. ")
		if !strings.Contains(comment, "# Expected: ") || !strings.Contains(comment, "# Seen") {
			t.Errorf("%s does not begin with what was expected and seen", name)
		}
		if _, expected, _ := strings.Cut(rest, "<<'EXPECTED'\n"); !strings.Contains(expected, seen) {
			t.Errorf("%s does not expect to see %q", name, seen)
		}
		for _, version := range regexp.MustCompile(`\d+(?:\.\d+)+`).FindAllString(versions, -1) {
			if !strings.Contains(comment, version) {
				t.Errorf("%s: its first lines do not name version %s", name, version)
			}
		}
	}
	if len(scripts) > 0 {
		t.Errorf("no row: %v", slices.Sorted(maps.Keys(scripts)))
	}
}
