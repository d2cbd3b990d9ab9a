package orm_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

func TestGORM(t *testing.T) {
	t.Parallel()
	for _, prepared := range []bool{false, true} {
		t.Run(fmt.Sprint("PrepareStmt ", prepared), func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, test *dbtest.DB) {
				t.Helper()
				prepare(t, test)
				db := check.Value(gorm.Open(gormDialectors[test.Dialect.String()](test.DB.DB), &gorm.Config{PrepareStmt: prepared, Logger: logger.Discard}))(t)
				pool := check.Value(db.DB())(t)
				guarded(t, test, pool, func(ctx context.Context, lease *sqllock.Lease) error {
					err := db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { // the outermost one: GORM makes savepoints of those in it
						if err := lease.Guard(ctx, tx.Statement.ConnPool.(sqllock.Tx)); err != nil {
							return err
						}
						return tx.Exec("UPDATE accounts SET balance = balance - 10 WHERE id = 1").Error
					})
					return err
				})
			})
		})
	}
}

var gormDialectors = map[string]func(*sql.DB) gorm.Dialector{
	"postgres": func(db *sql.DB) gorm.Dialector { return postgres.New(postgres.Config{Conn: db}) },
	"mysql":    func(db *sql.DB) gorm.Dialector { return mysql.New(mysql.Config{Conn: db}) },
	"sqlite":   func(db *sql.DB) gorm.Dialector { return sqlite.Dialector{Conn: db} },
}
