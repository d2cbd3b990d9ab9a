package locktable

import (
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/test/check"
)

var errBroken = errors.New("connection reset by peer")

// The transaction of a joint lock ends as its first message says, and its outcome is unknown only if COMMIT has no
// answer.
func TestAJointLockInTwoMessages(t *testing.T) {
	t.Parallel()
	race := &mysql.MySQLError{Number: 1213}
	for name, test := range map[string]struct {
		holderOfB string // empty for no answer to the message
		end       string // the other message
		failure   error  // of the last message
		again     bool   // all of it is sent again, and succeeds
		want      batch.Outcome[Result]
	}{
		"acquired":           {"mine", "COMMIT", nil, false, batch.Outcome[Result]{Value: Result{Acquired: true, Token: 2 << 16}}},
		"one is taken":       {"other", "ROLLBACK", nil, false, batch.Outcome[Result]{}},
		"a race":             {"", "", race, false, batch.Outcome[Result]{Err: race}},
		"a race at COMMIT":   {"mine", "COMMIT", race, false, batch.Outcome[Result]{Err: race}},
		"broken":             {"", "", errBroken, false, batch.Outcome[Result]{Err: errBroken}},
		"broken at COMMIT":   {"mine", "COMMIT", errBroken, false, batch.Outcome[Result]{Err: errBroken, Unknown: true}},
		"broken at ROLLBACK": {"other", "ROLLBACK", errBroken, false, batch.Outcome[Result]{}},
		"closed":             {"", "", driver.ErrBadConn, true, batch.Outcome[Result]{Value: Result{Acquired: true, Token: 2 << 16}}},
		"closed at COMMIT":   {"mine", "COMMIT", driver.ErrBadConn, true, batch.Outcome[Result]{Value: Result{Acquired: true, Token: 2 << 16}, Resent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, db, mock := mockedSequence(t)
			spare := check.Value(db.Conn(t.Context()))(t) // the mock ends with its last connection
			defer func() { _ = spare.Close() }()
			send := func(holderOfB, end string, failure error) {
				message := mock.ExpectQuery("^SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;\nSTART TRANSACTION;\n.*INSERT INTO .*")
				if holderOfB == "" {
					message.WillReturnError(failure)
					return
				}
				message.WillReturnRows(sqlmock.NewRows([]string{"LOCK_KEY", "CLIENT_ID", "number"}).AddRow("a", "mine", 1).AddRow("b", holderOfB, 2))
				last := mock.ExpectExec(end)
				if last.WillReturnResult(driver.RowsAffected(0)); failure != nil {
					last.WillReturnError(failure)
				}
			}
			mock.ExpectQuery("^SELECT REGION").WillReturnRows(sqlmock.NewRows([]string{"REGION", "LOCK_KEY", "CLIENT_ID", "age", "left"}))
			send(test.holderOfB, test.end, test.failure)
			if test.again {
				send("mine", "COMMIT", nil)
			}
			got := table.Acquisitions.sender.acquireJoint(t.Context(), Claim{LockKey: "a", More: []string{"b"}, Holder: "mine", TTL: time.Minute})
			check.Is(t, got.Err, test.want.Err)
			if got.Err = test.want.Err; got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
			check.Must(t, mock.ExpectationsWereMet())
		})
	}
}

// A message that releases all rows or none is followed by a transaction that releases some.
func TestAReleaseInOneMessage(t *testing.T) {
	t.Parallel()
	for picked, want := range map[int]int{1: 2, 0: 1} { // whether all were picked, and how many rows are released
		table, _, mock := mockedSequence(t)
		mock.ExpectQuery("^SET TRANSACTION ISOLATION LEVEL READ COMMITTED;\nSTART TRANSACTION;\n.* INTO @sqllock_picked .*SKIP LOCKED;\n.*DELETE .* AND @sqllock_picked = .*;\nSELECT @sqllock_picked = .*;\nCOMMIT$").
			WillReturnRows(sqlmock.NewRows([]string{"picked"}).AddRow(picked))
		if picked == 0 {
			mock.ExpectBegin()
			mock.ExpectQuery("SELECT LOCK_KEY, CLIENT_ID .*SKIP LOCKED").WillReturnRows(sqlmock.NewRows([]string{"LOCK_KEY", "CLIENT_ID"}).AddRow("a", "mine"))
			mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(1))
			mock.ExpectCommit()
		}
		gone, resent, err := table.deleteMany(t.Context(), stmt.Together(Claim{LockKey: "a", More: []string{"b"}, Holder: "mine"}.Each()))
		if len(gone) != want || resent || err != nil {
			t.Errorf("%v, %t, %v", gone, resent, err)
		}
		check.Must(t, mock.ExpectationsWereMet())
	}
}

// A message that has no room for all rows is divided. If a part fails, all rows are sent again, and those of the
// part before are not found then, although they were released, or left to expire.
func TestADividedStatementThatIsRepeated(t *testing.T) {
	t.Parallel()
	race := &mysql.MySQLError{Number: 1213}
	columns := []string{"LOCK_KEY", "CLIENT_ID"}
	opened := func() (*Table, sqlmock.Sqlmock) {
		table, _, mock := mockedSequence(t)
		table.statements.DeleteAll.Message, table.statements.KeepAll.Message = stmt.Statement{}, stmt.Statement{}
		return table, mock
	}
	begin := func(mock sqlmock.Sqlmock, picked ...string) {
		mock.ExpectBegin()
		rows := sqlmock.NewRows(columns)
		for _, lockKey := range picked {
			rows.AddRow(lockKey, "mine")
		}
		mock.ExpectQuery("SELECT LOCK_KEY, CLIENT_ID .*SKIP LOCKED").WillReturnRows(rows)
	}
	change := func(mock sqlmock.Sqlmock, text string, err error) {
		changing := mock.ExpectExec(text)
		if err != nil {
			changing.WillReturnError(err)
			mock.ExpectRollback()
			return
		}
		changing.WillReturnResult(driver.RowsAffected(1))
		mock.ExpectCommit()
	}
	fail := func(mock sqlmock.Sqlmock, text string) {
		begin(mock, "a", "b")
		change(mock, text, &mysql.MySQLError{Number: 1153})
		begin(mock, "a")
		change(mock, text, nil)
		begin(mock, "b")
		change(mock, text, race)
	}
	c := Claim{LockKey: "a", More: []string{"b"}, Holder: "mine", TTL: time.Minute}
	found := func(rows ...string) *sqlmock.Rows {
		all := sqlmock.NewRows([]string{"REGION", "LOCK_KEY", "CLIENT_ID", "age", "left"})
		for _, lockKey := range rows {
			all.AddRow("r", lockKey, "mine", 1, 2)
		}
		return all
	}

	table, mock := opened()
	fail(mock, "DELETE")
	begin(mock)
	mock.ExpectCommit() // of the part with a
	begin(mock, "b")
	change(mock, "DELETE", nil)
	mock.ExpectQuery("^SELECT REGION").WillReturnRows(found())
	mock.ExpectQuery("^SELECT REGION").WillReturnRows(found())
	if released, err := table.Releases.Release(t.Context(), c); !released || err != nil {
		t.Errorf("released %t, %v", released, err)
	}
	check.Must(t, mock.ExpectationsWereMet())

	table, mock = opened()
	fail(mock, "UPDATE")
	begin(mock)
	mock.ExpectCommit()
	begin(mock, "b")
	change(mock, "UPDATE", nil)
	held := sqlmock.NewRows(columns).AddRow("a", "next")
	mock.ExpectQuery("SELECT LOCK_KEY, CLIENT_ID").WillReturnRows(held)
	mock.ExpectQuery("SELECT LOCK_KEY, CLIENT_ID").WillReturnRows(sqlmock.NewRows(columns).AddRow("b", "next"))
	if kept, err := table.Releases.KeepAll(t.Context(), []Claim{c}, time.Second); err != nil || !kept[0] {
		t.Errorf("kept %v, %v", kept, err)
	}
	check.Must(t, mock.ExpectationsWereMet())
}
