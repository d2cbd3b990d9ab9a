package tests_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/pagecode"
)

// code is where the code of pages and comments stands.
var code = []string{"*_test.go", "../../sync/job/*_test.go", "../../sqllocktest/*_test.go"}

// TestPages finds each piece of Go of the pages in code that is compiled.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, page := range []string{
		"docs/jobs.md",
		"adapters/certmagiclock/README.md", "adapters/gocronlock/README.md", "adapters/gooselock/README.md", "adapters/httplock/README.md",
	} {
		pagecode.Check(t, "../../"+page, code...)
	}
}

// TestPackageComments finds the code of the package comments in code that is compiled.
func TestPackageComments(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"adapters/certmagiclock/locker.go", "adapters/gocronlock/locker.go", "adapters/gooselock/locker.go", "adapters/httplock/middleware.go", "sync/job/job.go",
		"sqllocktest/doc.go",
	} {
		text, err := os.ReadFile("../../" + file)
		must(t, err)
		comment, _, _ := strings.Cut(string(text), "\npackage ")
		page := filepath.Join(t.TempDir(), strings.ReplaceAll(file, "/", "-"))
		must(t, os.WriteFile(page, []byte(asPage(comment)), 0o600))
		pagecode.Check(t, page, code...)
	}
}

// asPage returns a comment as Markdown.
func asPage(comment string) string {
	var page strings.Builder
	inCode := false
	for line := range strings.Lines(comment) {
		indented := strings.HasPrefix(line, "//\t")
		if indented != inCode && strings.TrimSpace(line) != "//" {
			page.WriteString(map[bool]string{true: "```go\n", false: "```\n"}[indented])
			inCode = indented
		}
		page.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "//"), " "))
	}
	if inCode {
		page.WriteString("```\n")
	}
	return page.String()
}
