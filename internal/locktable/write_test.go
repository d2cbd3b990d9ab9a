package locktable

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
)

// A node of Galera that has lost the first run of a statement runs it again
// (wsrep_retry_autocommit), and has sent the rows of that run by then. Those of the last run count.
func TestAStatementThatTheServerHasRepeated(t *testing.T) {
	t.Parallel()
	type rows [][]string // CLIENT_ID of key a, and of key b
	for name, test := range map[string]struct {
		rows rows
		a, b bool // acquired
	}{
		"once":                 {rows{{"mine", "mine"}}, true, true},
		"once, lost":           {rows{{"other", "mine"}}, false, true},
		"lost the second time": {rows{{"mine", "mine"}, {"other", "mine"}}, false, true},
		"lost the first time":  {rows{{"other", "other"}, {"mine", "other"}}, true, false},
		"three times":          {rows{{"mine", "mine"}, {"other", "other"}, {"mine", "mine"}}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, db, mock := mockedSequence(t)
			one := sqlmock.NewRows([]string{"CLIENT_ID", "age", "left", "number"})
			many := sqlmock.NewRows([]string{"LOCK_KEY", "CLIENT_ID", "number"})
			number := 0
			numbered := func(holder string) int {
				if holder != "mine" {
					return 0
				}
				number++
				return number
			}
			for _, run := range test.rows {
				one.AddRow(run[0], 1, 2, numbered(run[0]))
				many.AddRow("a", run[0], numbered(run[0])).AddRow("b", run[1], numbered(run[1]))
			}
			mock.ExpectQuery("INSERT").WillReturnRows(one)
			mock.ExpectQuery("INSERT").WillReturnRows(many)

			a, b := Claim{LockKey: "a", Holder: "mine", TTL: time.Minute}, Claim{LockKey: "b", Holder: "mine", TTL: time.Minute}
			w := &oneRow{table: table, claim: a}
			_, err := w.run(t.Context(), db, false)
			got := w.got
			if err != nil || got.Acquired != test.a || got.Acquired != (got.Token > 0) || got.Acquired == (got.Row.Holder == "other") {
				t.Errorf("one: %+v, %v", got, err)
			}
			both := &manyRows{table: table, rows: together([]Claim{a, b})}
			_, err = both.run(t.Context(), db, false)
			tokens := both.tokens
			if (tokens["a"] > 0) != test.a || (tokens["b"] > 0) != test.b || err != nil {
				t.Errorf("many: %v, %v", tokens, err)
			}
		})
	}
}

// A row that was acquired in another isolation than it should may be left without an owner, if another caller has
// the turn by then: it was sent before, as far as its caller has to know.
func TestARowOfAnotherIsolationWithoutItsTurn(t *testing.T) {
	t.Parallel()
	for _, messages := range []bool{true, false} {
		table, db, mock := mockedSequence(t)
		spare := check.Value(db.Conn(t.Context()))(t) // the mock ends with its last connection
		if !messages {
			table.statements.plain.oneMessage = statement{}
		}
		table.acquirers = newAcquirers(table.pool, db, nil)
		table.statements.inOrder.oneVerified = table.statements.inOrder.one
		columns := []string{"CLIENT_ID", "age", "left", "number"}
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(append(columns, "isolation")).AddRow("mine", 1, 2, 3, "read committed"))
		if !messages {
			mock.ExpectBegin()
		}
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(columns))
		if !messages {
			mock.ExpectCommit()
		}
		w := &oneRow{table: table, claim: Claim{LockKey: "a", Holder: "mine", TTL: time.Minute, turn: 1}}
		_, resent, err := table.write(t.Context(), w, false)
		if !resent || w.got.Acquired || err != nil {
			t.Errorf("messages %t: resent %t, %+v, %v", messages, resent, w.got, err)
		}
		check.Must(t, errors.Join(mock.ExpectationsWereMet(), spare.Close()))
	}
}

// A joint claim lacks the row whose turn another caller has. That does not say that its keys are one row.
func TestAJointClaimWithoutItsTurn(t *testing.T) {
	t.Parallel()
	for turn, want := range map[int64]bool{0: true, 1: false} {
		table, db, mock := mockedSequence(t)
		table.collation = "utf8mb4_general_ci"
		mock.ExpectQuery("^SELECT REGION").WillReturnRows(
			sqlmock.NewRows([]string{"REGION", "LOCK_KEY", "CLIENT_ID", "age", "left"}).AddRow("r", "b", "mine", 1, 2))
		c := Claim{LockKey: "a", More: []string{"b"}, Holder: "mine", TTL: time.Minute, InOrder: "a", turn: turn}
		if err := table.explainPartly(t.Context(), db, together(c.each())); Is(err, OneRow) != want || err == nil {
			t.Errorf("turn %d: %v", turn, err)
		}
	}
}

// mockedSequence returns the table of a MariaDB with a sequence, and what it is asked through.
func mockedSequence(t *testing.T) (*Table, *sql.DB, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New()
	check.Must(t, err)
	t.Cleanup(func() { _ = db.Close() }) // the mock did not expect it
	names := check.Value(dialect.NamesFor(""))(t)
	table := check.Value(Open(t.Context(), Config{
		DB: db, Dialect: dialect.MySQL().WithSequence(), Names: names, Region: "r", Layout: dialect.Spring7,
		Isolation: sql.LevelSerializable, MultiStatements: true,
	}))(t)
	return table, db, mock
}
