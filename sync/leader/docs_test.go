package leader_test

import (
	"os"
	"strings"
	"testing"
)

// TestTheDocumentBeginsWithTheExample compares the first code of docs/leader.md with lead, which
// ExampleElector_Run runs.
func TestTheDocumentBeginsWithTheExample(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/leader.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```go\n")
	code, _, _ := strings.Cut(rest, "```\n")
	_, rest, _ = strings.Cut(string(examples), "func lead(ctx context.Context, repository *sqllock.Repository) error {\n")
	body, _, _ := strings.Cut(rest, "\n}\n")
	var want strings.Builder
	for line := range strings.Lines(body + "\n") {
		want.WriteString(strings.TrimPrefix(line, "\t"))
	}
	if code != want.String() || code == "" {
		t.Errorf("docs/leader.md begins with\n%s\nthe example is\n%s", code, want.String())
	}
	if lines := strings.Count(code, "\n"); lines != 12 {
		t.Errorf("%d lines to copy, want 12", lines)
	}
}
