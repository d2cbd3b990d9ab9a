package doctor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
)

// A pooler of whole sessions that has no second one lets a connection wait for minutes. That says
// nothing, and the other checks follow.
func TestPoolerWithoutASecondSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, mock, err := sqlmock.New()
		check.Must(t, err)
		defer func() { _ = db.Close() }() // the mock did not expect it
		mock.ExpectQuery("SELECT pg_backend_pid").WillReturnRows(sqlmock.NewRows([]string{"session"}).AddRow("1 now"))
		mock.ExpectQuery("SELECT pg_backend_pid").WillDelayFor(time.Hour).WillReturnRows(sqlmock.NewRows([]string{"session"}).AddRow("1 now"))
		e := &examination{Connection: &connect.Connection{DB: sqlx.NewDb(db, "sqlmock"), Dialect: dialect.Postgres()}}
		began := time.Now()
		if findings := e.checkPooler(t.Context()); findings != nil {
			t.Error(findings)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
	})
}
