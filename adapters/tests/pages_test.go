package tests_test

import (
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
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
		parsed := check.Value(parser.ParseFile(token.NewFileSet(), "../../"+file, nil, parser.PackageClauseOnly|parser.ParseComments))(t)
		var text strings.Builder
		for _, block := range new(comment.Parser).Parse(parsed.Doc.Text()).Content {
			if code, ok := block.(*comment.Code); ok {
				text.WriteString("```go\n" + code.Text + "```\n")
			}
		}
		page := filepath.Join(t.TempDir(), strings.ReplaceAll(file, "/", "-"))
		must(t, os.WriteFile(page, []byte(text.String()), 0o600))
		pagecode.Check(t, page, code...)
	}
}
