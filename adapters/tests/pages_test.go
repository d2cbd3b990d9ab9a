package tests_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/pagecode"
)

// TestPages finds each piece of Go of the pages in code that is compiled.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, page := range []string{
		"docs/jobs.md", "docs/guide.md",
		"certmagiclock/README.md", "gocronlock/README.md", "gooselock/README.md", "httplock/README.md", "job/README.md",
	} {
		pagecode.Check(t, "../../"+page, "*_test.go", "../../job/*_test.go", "../../sqllocktest/*_test.go")
	}
}
