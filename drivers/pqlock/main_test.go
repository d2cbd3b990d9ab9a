package pqlock_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/migrations"
)

func TestMain(m *testing.M) { testmain.Run(m) }

func TestExample(t *testing.T) { //nolint:paralleltest // it sets a variable of the environment
	db := dbtest.Postgres(t)
	if err := migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil); err != nil {
		t.Fatal(err)
	}
	db.RunExample(t, Example, "the only one\n<nil>\n")
}
