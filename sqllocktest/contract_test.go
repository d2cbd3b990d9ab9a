package sqllocktest_test

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/contract"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/sqllocktest"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// TestContract runs the behaviour suite on the databases of New, in the isolation that needs the
// most round trips. It takes a few seconds: it is the whole suite.
func TestContract(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the suite runs on SQLite in the root package")
	}
	contract.Run(t, contract.Cell{
		Dialect: dialect.SQLite(), Layout: dialect.Spring7, Isolation: sqllock.Serializable,
		InBubble: func(tb testing.TB) *sqlx.DB {
			tb.Helper()
			return sqlx.NewDb(sqllocktest.New(tb, nil).DB(), "sqlite")
		},
	}, func(r contract.Result) {
		dbtest.ReportCell(t, dbtest.Cell{
			Server: "sqlite", Driver: "sqlite", Layout: dialect.Spring7.String(), Isolation: sqllock.Serializable.String(),
			Settings: "sqllocktest", Run: r.Run, Failed: r.Failed,
		})
	})
}
