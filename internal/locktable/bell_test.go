package locktable

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/turns"
)

// A noted notes what is done with a bell.
type noted struct {
	all   []string
	muted bool
}

func (n *noted) Tell(func([]string), func(error)) {}
func (n *noted) Attend(string, string) func()     { return func() {} }
func (n *noted) Rings() bool                      { return !n.muted }
func (n *noted) IsAnswer(err error) bool          { return errors.As(err, new(*mysql.MySQLError)) }

func (n *noted) Mute(error) {
	n.all = append(n.all, "mute")
	n.muted = true
}

func (n *noted) Ring(taken bool, names ...string) {
	n.all = append(n.all, fmt.Sprint(taken, len(names)))
}

// withBell gives a table over a mock a bell.
func withBell(t *testing.T) (*Table, sqlmock.Sqlmock, *noted) {
	t.Helper()
	table, db, mock := mockedSequence(t)
	spare := check.Value(db.Conn(t.Context()))(t) // the mock ends with its last connection
	t.Cleanup(func() { _ = spare.Close() })
	bell := new(noted)
	answerSessions(mock, direct...)
	answerDatabase(mock)
	check.Must(t, table.openBell(WithBell(t.Context(), bell), Config{Region: "r"}, true))
	return table, mock, bell
}

// direct are the sessions of two connections, asked in turn, if there is no pooler.
var direct = []int{1, 2, 1, 2, 1, 2, 1, 2, 1, 2}

func answerSessions(mock sqlmock.Sqlmock, sessions ...int) {
	for _, session := range sessions {
		mock.ExpectQuery(`^SELECT CONNECTION_ID\(\) \+ 0$`).WillReturnRows(sqlmock.NewRows([]string{"id"}).AddRow(session))
	}
}

func answerDatabase(mock sqlmock.Sqlmock) {
	mock.ExpectQuery(`^SELECT DATABASE\(\)$`).WillReturnRows(sqlmock.NewRows([]string{"database"}).AddRow("app"))
}

// A release rings only if it has deleted the row, and a process waits for it. What the bell does is not part of its result.
func TestRelease_WithABell(t *testing.T) {
	t.Parallel()
	race, unknown, refused := &mysql.MySQLError{Number: 1213}, &mysql.MySQLError{Number: 1305}, &mysql.MySQLError{Number: 1644}
	missing := &mysql.MySQLError{Number: 1146}
	for name, test := range map[string]struct {
		alone   int64 // how many rows are deleted since no process waits
		failure error // of that
		plain   int64 // how many rows the plain DELETE deletes; -1 if there is none
		want    error
		done    bool
		bell    string
		maybe   bool // it may have deleted the row before
	}{
		"no one waits":              {1, nil, -1, nil, true, "[]", false},
		"a process waits":           {0, nil, 1, nil, true, "[true 1]", false},
		"the row is gone":           {0, nil, 0, nil, false, "[]", false},
		"there is no such function": {0, unknown, 1, nil, true, "[mute]", false},
		"a lost lock, without it":   {0, unknown, 0, nil, false, "[mute]", false},
		"it is refused":             {0, refused, 0, nil, false, "[mute]", false},
		"a race":                    {0, race, -1, race, false, "[]", false},
		"no table":                  {0, missing, -1, missing, false, "[]", false},
		"broken":                    {0, errBroken, 0, nil, false, "[mute]", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, mock, bell := withBell(t)
			alone := mock.ExpectExec("DELETE .* AND IS_USED_LOCK").WillReturnResult(sqlmock.NewResult(0, test.alone))
			if test.failure != nil {
				alone.WillReturnError(test.failure)
			}
			if test.plain >= 0 {
				mock.ExpectExec("DELETE .* AND CLIENT_ID = .$").WillReturnResult(sqlmock.NewResult(0, test.plain))
			}
			got := table.Releases.releaseOne(t.Context(), stmt.Claim{LockKey: "k", Holder: "mine", TTL: time.Minute})
			check.Is(t, got.Err, test.want)
			if got.Value != test.done || got.Unknown != test.maybe || fmt.Sprint(bell.all) != test.bell {
				t.Errorf("%+v, bell %q, want %t, %s", got, bell.all, test.done, test.bell)
			}
			check.Must(t, mock.ExpectationsWereMet())
		})
	}
}

// A deletion that is refused without the condition, too, such as by a trigger, says nothing of wake-ups.
func TestRelease_RefusedWithABellOrNot(t *testing.T) {
	t.Parallel()
	table, mock, bell := withBell(t)
	refused := &mysql.MySQLError{Number: 1644}
	mock.ExpectExec("DELETE .* AND IS_USED_LOCK").WillReturnError(refused)
	mock.ExpectExec("DELETE .* AND CLIENT_ID = .$").WillReturnError(refused)
	got := table.Releases.releaseOne(t.Context(), stmt.Claim{LockKey: "k", Holder: "mine", TTL: time.Minute})
	check.Is(t, got.Err, refused)
	check.Equal(t, "the bell", fmt.Sprint(bell.all), "[]")
	check.Must(t, mock.ExpectationsWereMet())
}

// A batch rings for the rows that it has deleted. The others are released alone.
func TestReleases_WithABell(t *testing.T) {
	t.Parallel()
	table, _, bell := withBell(t)
	claims := []stmt.Claim{{LockKey: "k", Holder: "mine"}, {LockKey: "pinned", Holder: "mine"}, {LockKey: "l", Holder: "mine"}}
	gone := map[stmt.RowID]bool{claims[0].ID(): true, claims[2].ID(): true}
	table.Releases.settle(t.Context(), claims, make([]batch.Outcome[bool], len(claims)), gone, false, nil)
	table.Releases.settle(t.Context(), claims, make([]batch.Outcome[bool], len(claims)), nil, false, nil)
	check.Equal(t, "the bell", fmt.Sprint(bell.all), "[false 2]")
}

// While releases do not ring, they are what they are without a bell.
func TestRelease_WithoutABell(t *testing.T) {
	t.Parallel()
	table, mock, bell := withBell(t)
	refused := &mysql.MySQLError{Number: 1305}
	mock.ExpectExec("IS_USED_LOCK").WillReturnError(refused)
	for range 2 {
		mock.ExpectExec("DELETE .* AND CLIENT_ID = .$").WillReturnResult(sqlmock.NewResult(0, 1))
		got := table.Releases.releaseOne(t.Context(), stmt.Claim{LockKey: "k", Holder: "mine", TTL: time.Minute})
		check.Must(t, got.Err)
		check.Equal(t, "released", got.Value, true)
	}
	check.Equal(t, "the bell", fmt.Sprint(bell.all), "[mute]")
	check.Must(t, mock.ExpectationsWereMet())
}

// Where sessions are not this process's alone, or the server is not known or does not answer, there is no bell, which is no
// error of Open, and is told.
func TestOpenBell(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		plain    bool
		nodes    bool // sessions may be on several
		sessions []int
		failure  error
		want     bool
	}{
		"a MySQL":              {true, false, direct, nil, true},
		"one session for both": {true, false, []int{7, 7}, nil, false},
		"changing sessions":    {true, false, []int{1, 2, 1, 3}, nil, false},
		"not known":            {false, false, nil, nil, false},
		"Galera, vtgate":       {true, true, nil, nil, false},
		"no answer":            {true, false, nil, errBroken, false},
		"no name":              {true, false, direct, errBroken, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, db, mock := mockedSequence(t)
			spare := check.Value(db.Conn(t.Context()))(t) // the mock ends with its last connection
			t.Cleanup(func() { _ = spare.Close() })
			table.Turns = queueOn(table, test.nodes)
			answerSessions(mock, test.sessions...)
			switch {
			case test.failure != nil:
				mock.ExpectQuery("^SELECT ").WillReturnError(test.failure)
			case test.want:
				answerDatabase(mock)
			}
			var told error
			check.Must(t, table.openBell(WithBell(t.Context(), new(noted)), Config{Region: "r", OnFallback: func(why error) { told = why }}, test.plain))
			check.Equal(t, "it was told why there is none", errors.Is(told, ErrUnwoken), !test.want)
			check.Equal(t, "there is a bell", table.Releases.bell != nil, test.want)
			check.Must(t, mock.ExpectationsWereMet())
		})
	}
}

// That a context has ended is no reason to do without wake-ups.
func TestBell_ContextEnds(t *testing.T) {
	t.Parallel()
	table, _, mock := mockedSequence(t)
	table.Turns = queueOn(table, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := table.openBell(WithBell(ctx, new(noted)), Config{OnFallback: func(why error) { t.Error(why) }}, true)
	check.Is(t, err, context.Canceled)
	check.Must(t, mock.ExpectationsWereMet())
}

// queueOn returns the queue for turns of a table whose sessions may be on several nodes.
func queueOn(table *Table, nodes bool) *turns.Queue {
	return turns.New(turns.Settings{DB: table.pool.DB, Texts: table.dialect.Turns(table.tableNames), Nodes: nodes})
}

// The name of a lock is that of its database, table, region and key, in no more than 64 characters.
func TestBellOf(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, database := range []string{"app", "other"} {
		for _, prefix := range []string{"INT_", "APP_", "third.INT_"} {
			for _, region := range []string{"r", "s"} {
				for _, key := range []string{"k", strings.Repeat("k", 36)} {
					names := check.Value(sqltext.NamesFor(prefix))(t)
					name := (&bells{names: names, region: region, database: database}).nameOf(key)
					what := fmt.Sprint(database, " ", prefix, region, " ", key)
					if names.Schema != "" {
						what = fmt.Sprint(prefix, region, " ", key)
					}
					if before, ok := seen[name]; ok && before != what || len(name) > 64 {
						t.Errorf("%s and %s have the name %q", before, what, name)
					}
					seen[name] = what
				}
			}
		}
	}
	if len(seen) != 20 {
		t.Errorf("%d names", len(seen))
	}
}
