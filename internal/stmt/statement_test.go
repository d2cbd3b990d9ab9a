package stmt

import (
	"testing"

	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// A parameter without a value would be NULL, which matches no row.
func TestEachParameterHasAValue(t *testing.T) {
	t.Parallel()
	for _, name := range parameters {
		s := check.Value(Compile("SELECT :"+name, sqltext.Postgres(), "r"))(t)
		if args := s.Args(Values{}); len(args) != 1 || args[0] == nil {
			t.Errorf(":%s is %v", name, args)
		}
	}
}
