// Package pagecode checks the Go code of a page: whether it stands in files that are compiled.
package pagecode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// Check fails the test if a piece of Go of the page stands in none of the files that the patterns
// of [filepath.Glob] name, or if the page has none. Indentation and empty lines do not count.
func Check(t *testing.T, page string, patterns ...string) {
	t.Helper()
	var code strings.Builder
	for _, pattern := range patterns {
		paths := check.Value(filepath.Glob(pattern))(t)
		for _, path := range paths {
			code.WriteString(read(t, path))
		}
	}
	compiled := flat(code.String())
	blocks := strings.Split(read(t, page), "```go\n")[1:]
	for _, block := range blocks {
		block, _, _ := strings.Cut(block, "```")
		if !strings.Contains(compiled, flat(block)) {
			t.Errorf("%s has code that is compiled nowhere:\n%s", page, block)
		}
	}
	if len(blocks) == 0 {
		t.Errorf("%s has no code", page)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // the test names the file
	check.Must(t, err)
	return string(text)
}

// flat removes the indentation and the empty lines of code.
func flat(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
