package turns

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
)

var errCut = errors.New("connection reset by peer")

// Waits for a turn have no end only while the server lets each last for a minute. A server that does not answer is an error of the
// database, and a pooler one of the configuration. If there is no session to wait in, that is told once a minute.
func TestTake(t *testing.T) {
	t.Parallel()
	direct := []int{1, 2, 1, 2, 1, 2, 1, 2, 1, 2}
	over := &pq.Error{Code: "55P03"}
	for _, test := range []struct {
		want     error
		sessions []int   // of two connections, in turn
		begins   []error // how waits end
	}{
		{dbcall.ErrTimedOut, direct, []error{dbcall.ErrTimedOut}},
		{errCut, direct, []error{over, over, over, over, errCut, errCut, errCut}},
		{errPooledTurns, []int{1, 1}, nil},
		{errPooledTurns, []int{1, 2, 1, 3}, nil},
		{errPoolInUse, nil, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			db, mock, err := sqlmock.New(sqlmock.MonitorPingsOption(true))
			check.Must(t, err)
			spare := check.Value(db.Conn(t.Context()))(t) // the mock ends with its last connection
			if test.sessions == nil {
				db.SetMaxOpenConns(1)
			}
			asked := func() *sqlmock.ExpectedQuery {
				return mock.ExpectQuery("pg_backend_pid").WillReturnRows(sqlmock.NewRows([]string{"pid"}).AddRow(3))
			}
			for _, session := range test.sessions {
				mock.ExpectQuery("pg_backend_pid").WillReturnRows(sqlmock.NewRows([]string{"pid"}).AddRow(session))
			}
			for _, err := range test.begins {
				asked()
				begin := mock.ExpectExec("^BEGIN").WillReturnError(err)
				switch {
				case errors.Is(err, over):
					begin.WillDelayFor(turnWait)
					mock.ExpectExec("^COMMIT").WillReturnResult(sqlmock.NewResult(0, 0))
				case errors.Is(err, dbcall.ErrTimedOut): // and so are new connections
					begin.WillDelayFor(time.Hour)
					asked().WillDelayFor(time.Hour)
					asked().WillDelayFor(time.Hour)
				}
			}
			told := 0
			d := sqltext.Postgres()
			queue := New(Settings{
				DB: db, Texts: d.Turns(sqltext.Names{}), Server: dbcall.ServerOf(t.Context(), d, sqltext.Names{}), Topic: func(lockKey string) string { return lockKey },
				OnFallback: func(error) { told++ }, Ask: func(context.Context, string) (int, error) { return 0, nil },
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			_, err = queue.Take(ctx, "k")
			queue.FallBack(err)
			if !errors.Is(err, test.want) || dbcall.Is(err, dbcall.NoAnswer) != errors.Is(test.want, dbcall.ErrTimedOut) || told != 1 {
				t.Errorf("%v, want %v; told %d times", err, test.want, told)
			}
			check.Must(t, errors.Join(mock.ExpectationsWereMet(), spare.Close()))
			_ = db.Close() // the mock did not expect it
		})
	}
}
