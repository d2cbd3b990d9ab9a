package migrations_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/migrations"
)

var dialects = map[string]dialect.Dialect{
	"sqlite":   dialect.SQLite(),
	"postgres": dialect.Postgres(),
	"mysql":    dialect.MySQL(),
}

// If childDSN is set, this program migrates the database of that DSN up and exits.
// childDriver is its driver.
const (
	childDSN    = "SQLLOCK_MIGRATE_DSN"
	childDriver = "SQLLOCK_MIGRATE_DRIVER"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childDSN); dsn != "" {
		if err := child(os.Getenv(childDriver), dsn); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testmain.Run(m)
}

func child(driver, dsn string) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return migrations.Up(context.Background(), db, dialects[driver], nil)
}
