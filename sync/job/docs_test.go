package job_test

import (
	"os"
	"strings"
	"testing"
)

// TestTheDocumentBeginsWithTheExample compares the first code of docs/jobs.md with reports, which
// TestReports runs.
func TestTheDocumentBeginsWithTheExample(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/jobs.md")
	must(t, err)
	example, err := os.ReadFile("example_test.go")
	must(t, err)
	_, rest, _ := strings.Cut(string(page), "```go\n")
	code, _, _ := strings.Cut(rest, "```\n")
	_, rest, _ = strings.Cut(string(example), "func reports(ctx context.Context, registry *sqllock.Registry) error {\n")
	body, _, _ := strings.Cut(rest, "\n}\n")
	var want strings.Builder
	for line := range strings.Lines(body + "\n") {
		want.WriteString(strings.TrimPrefix(line, "\t"))
	}
	if code != want.String() || code == "" {
		t.Errorf("docs/jobs.md begins with\n%s\nthe example is\n%s", code, want.String())
	}
}
