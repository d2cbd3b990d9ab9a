package locktable

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
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
			w := &oneRow{sender: table.Acquisitions.sender, claim: a}
			_, err := w.run(t.Context(), db, false)
			got := w.got
			if err != nil || got.Acquired != test.a || got.Acquired != (got.Token > 0) || got.Acquired == (got.Row.Holder == "other") {
				t.Errorf("one: %+v, %v", got, err)
			}
			both := &manyRows{sender: table.Acquisitions.sender, rows: stmt.Together([]Claim{a, b})}
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
			table.statements.Plain.OneMessage = stmt.Statement{}
		}
		table.Acquisitions.sender.acquirers = newAcquirers(table.pool, db, nil)
		table.statements.InOrder.OneVerified = table.statements.InOrder.One
		columns := []string{"CLIENT_ID", "age", "left", "number"}
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(append(columns, "isolation")).AddRow("mine", 1, 2, 3, "read committed"))
		if !messages {
			mock.ExpectBegin()
		}
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(columns))
		if !messages {
			mock.ExpectCommit()
		}
		w := &oneRow{sender: table.Acquisitions.sender, claim: Claim{LockKey: "a", Holder: "mine", TTL: time.Minute, Turn: 1}}
		_, resent, err := table.Acquisitions.sender.write(t.Context(), w, false)
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
		table.Acquisitions.sender.collation = "utf8mb4_general_ci"
		mock.ExpectQuery("^SELECT REGION").WillReturnRows(
			sqlmock.NewRows([]string{"REGION", "LOCK_KEY", "CLIENT_ID", "age", "left"}).AddRow("r", "b", "mine", 1, 2))
		c := Claim{LockKey: "a", More: []string{"b"}, Holder: "mine", TTL: time.Minute, InOrder: "a", Turn: turn}
		if err := table.Acquisitions.sender.explainPartly(t.Context(), db, stmt.Together(c.Each())); dbcall.Is(err, dbcall.OneRow) != want || err == nil {
			t.Errorf("turn %d: %v", turn, err)
		}
	}
}

// A message that reads the row first says who has it, and for how long.
func TestAMessageThatLooksFirst(t *testing.T) {
	t.Parallel()
	table, db, mock := mockedTable(t, sqltext.MySQL())
	spare := check.Value(db.Conn(t.Context()))(t) // the mock ends with its last connection
	level := stmt.MessageLevel(sql.LevelSerializable)
	table.statements = check.Value(stmt.CompileAll(table.dialect, table.dialect, dialect.Spring7, table.tableNames, "r", stmt.Levels{Acquire: level, Joint: level, Look: true}, false))(t)
	table.Acquisitions.sender.readBeforeAcquire = false // as of a table that was opened with such messages
	columns := []string{"acquired", "number", "held", "holder", "age", "left"}
	mock.ExpectQuery("^DO 0; SELECT .+ INTO .+; SET TRANSACTION .+ WHERE @sqllock_held = 0 .+ COMMIT$").WillReturnRows(
		sqlmock.NewRows(columns).AddRow(0, 7, 1, "other", 1_000_000, 2_000_000))
	mock.ExpectQuery("^DO 0; ").WillReturnRows(sqlmock.NewRows(columns).AddRow(1, 8, 0, nil, nil, nil))
	c := Claim{LockKey: "a", Holder: "mine", TTL: time.Minute}
	refused, acquired := table.Acquisitions.sender.acquireOne(t.Context(), c), table.Acquisitions.sender.acquireOne(t.Context(), c)
	check.Must(t, errors.Join(refused.Err, acquired.Err, mock.ExpectationsWereMet(), spare.Close()))
	check.Equal(t, "refused", refused.Value, Result{Row: Row{Region: "r", LockKey: "a", Holder: "other", Age: time.Second, Left: 2 * time.Second}})
	check.Equal(t, "acquired", acquired.Value, Result{Acquired: true, Token: 8 * TokensPerAcquisition})
}

// mockedSequence returns the table of a MariaDB with a sequence, and what it is asked through.
func mockedSequence(t *testing.T) (*Table, *sql.DB, sqlmock.Sqlmock) {
	t.Helper()
	return mockedTable(t, sqltext.MySQL().WithSequence())
}

func mockedTable(t *testing.T, d sqltext.Dialect) (*Table, *sql.DB, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New()
	check.Must(t, err)
	t.Cleanup(func() { _ = db.Close() }) // the mock did not expect it
	names := check.Value(sqltext.NamesFor(""))(t)
	table := check.Value(Open(t.Context(), Config{
		DB: db, Dialect: d, Names: names, Region: "r", Layout: dialect.Spring7,
		Isolation: sql.LevelSerializable, MultiStatements: true,
	}))(t)
	return table, db, mock
}
