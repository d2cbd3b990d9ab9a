package pgxlock_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/migrations"
)

func TestMain(m *testing.M) { testmain.Run(m) }

func TestExample(t *testing.T) { //nolint:paralleltest // it sets a variable of the environment
	db := dbtest.Postgres(t)
	check.Must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	db.RunExample(t, Example, "the only one\n<nil>\n")
}
