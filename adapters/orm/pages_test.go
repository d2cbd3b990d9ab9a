package orm_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/pagecode"
)

// TestPages finds each piece of Go of the page in the code that is run here.
func TestPages(t *testing.T) {
	t.Parallel()
	pagecode.Check(t, "../../docs/orm.md", "*_test.go")
}
