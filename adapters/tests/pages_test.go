package tests_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPages finds each piece of Go of the pages in code that is compiled.
func TestPages(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, pattern := range []string{"*_test.go", "../../job/*_test.go", "../../sqllocktest/*_test.go"} {
		paths, err := filepath.Glob(pattern)
		must(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path) //nolint:gosec // the pattern names the file
			must(t, err)
			code.Write(text)
		}
	}
	compiled := flat(code.String())
	for _, page := range []string{"adapters.md", "jobs.md", "guide.md"} {
		text, err := os.ReadFile(filepath.Join("../../docs", page))
		must(t, err)
		blocks := strings.Split(string(text), "```go\n")[1:]
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
