package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestDocs_BeginWithTheExample compares the first code of a page with the function that an example, or a test, runs.
func TestDocs_BeginWithTheExample(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		page, source, function string
		lines                  int // that a reader copies
	}{
		{"docs/jobs.md", "sync/job/example_test.go", "func reports(ctx context.Context, registry *sqllock.Registry) error {\n", 0},
		{"docs/leader.md", "sync/leader/example_test.go", "func lead(ctx context.Context, repository *sqllock.Repository) error {\n", 12},
	} {
		page := check.Value(os.ReadFile(test.page))(t)
		source := check.Value(os.ReadFile(test.source))(t)
		_, rest, _ := strings.Cut(string(page), "```go\n")
		code, _, _ := strings.Cut(rest, "```\n")
		_, rest, _ = strings.Cut(string(source), test.function)
		body, _, _ := strings.Cut(rest, "\n}\n")
		var want strings.Builder
		for line := range strings.Lines(body + "\n") {
			want.WriteString(strings.TrimPrefix(line, "\t"))
		}
		if code != want.String() || code == "" {
			t.Errorf("%s begins with\n%s\nthe example is\n%s", test.page, code, want.String())
		}
		if lines := strings.Count(code, "\n"); test.lines != 0 && lines != test.lines {
			t.Errorf("%s: %d lines to copy, want %d", test.page, lines, test.lines)
		}
	}
}
