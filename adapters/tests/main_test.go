package tests_test

import (
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/certmagic"
	"github.com/go-co-op/gocron/v2"
	"github.com/pressly/goose/v3/lock"

	"github.com/sqllock/sqllock/adapters/certmagiclock"
	"github.com/sqllock/sqllock/adapters/gocronlock"
	"github.com/sqllock/sqllock/adapters/gooselock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/internal/test/pagecode"
	"github.com/sqllock/sqllock/sync/leader"
)

var (
	must = check.Must
	is   = check.Is
)

func TestMain(m *testing.M) {
	roles := make(map[string]child.Role)
	for name, library := range libraries {
		roles[name] = library.role()
	}
	child.Main(m, roles)
}

// The compiler proves that the adapters have the methods of the real interfaces.
var (
	_ lock.Locker                = (*gooselock.Locker)(nil)
	_ lock.SessionLocker         = (*gooselock.Locker)(nil)
	_ certmagic.Locker           = (*certmagiclock.Locker)(nil)
	_ certmagic.TryLocker        = (*certmagiclock.Locker)(nil)
	_ certmagic.LockLeaseRenewer = (*certmagiclock.Locker)(nil)
	_ gocron.Elector             = (*leader.Elector)(nil)
	_ gocron.Locker              = (*gocronlock.Locker[gocron.Lock])(nil)
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
