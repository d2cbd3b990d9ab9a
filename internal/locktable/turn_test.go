package locktable

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/test/check"
)

// Waits for a turn have no end only while the server lets each last for a minute. A server that does not answer is an error of the
// database, and a pooler one of the configuration. If there is no session to wait in, that is told once a minute.
func TestTakeTurn(t *testing.T) {
	t.Parallel()
	direct := []int{1, 2, 1, 2, 1, 2, 1, 2, 1, 2}
	over := &pq.Error{Code: "55P03"}
	for _, test := range []struct {
		want     error
		sessions []int   // of two connections, in turn
		begins   []error // how waits end
	}{
		{errTimedOut, direct, []error{errTimedOut}},
		{errBroken, direct, []error{over, over, over, over, errBroken, errBroken, errBroken}},
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
				case errors.Is(err, errTimedOut): // and so are new connections
					begin.WillDelayFor(time.Hour)
					asked().WillDelayFor(time.Hour)
					asked().WillDelayFor(time.Hour)
				}
			}
			told := 0
			table, err := Open(t.Context(), Config{DB: db, Turns: db, Dialect: dialect.Postgres(), Layout: dialect.Spring7, OnFallback: func(error) { told++ }})
			check.Must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			_, err = table.TakeTurn(ctx, "k")
			table.turns.fallBack(err)
			if !errors.Is(err, test.want) || Is(err, NoAnswer) != errors.Is(test.want, errTimedOut) || told != 1 {
				t.Errorf("%v, want %v; told %d times", err, test.want, told)
			}
			check.Must(t, errors.Join(mock.ExpectationsWereMet(), spare.Close()))
			_ = db.Close() // the mock did not expect it
		})
	}
}

// An attempt in order that has lost races, or has met a pinned row, is not acquired, as any other. Its row is not read.
func TestAcquire_InOrderIsNotAcquired(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]dialect.Class{"a lost race": dialect.Transient, "a pinned row": dialect.Blocked} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				classes := classifier(func(error) dialect.Class { return class })
				table := &Table{errors: classes}
				table.acquires = batched[Result]{
					one: func(context.Context, Claim) batch.Outcome[Result] {
						return batch.Outcome[Result]{Err: io.ErrNoProgress}
					},
					policy: acquiring, patience: batchTimeout, errors: classes, onLeave: table.inFlight.add, onLate: table.cleanUpLate,
				}
				table.acquires.makeBatcher(&table.keepsValues)
				got, err := table.Acquire(t.Context(), Claim{LockKey: "k", Holder: "mine", TTL: time.Minute, turn: 1})
				check.Must(t, err)
				check.Equal(t, "acquired", got.Acquired, false)
			})
		})
	}
}
