package session

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/sqllock/sqllock/internal/stmt"
)

// A preparer keeps the prepared statements of one connection, for a driver that has the server parse and plan each
// statement anew. The statements end with the connection.
//
//   - A text is prepared when it is sent for the second time: for one that is sent once, that would be a round
//     trip more.
//   - Of what has a variant for each number of rows nothing is prepared, nor are messages of several statements: see
//     isFixed.
//   - In a transaction nothing is prepared on a server. There an error would end the transaction, so that the
//     statement could not be sent again.
//   - After the server has lost a statement, no statement of the connection is prepared any more.
//     The next connection begins anew.
//
// The zero value prepares nothing.
type preparer struct {
	prepares      func() bool            // nil for never
	inside        bool                   // whether also in a transaction
	isLost        func(error) bool       // see [Target]
	statements    map[string]driver.Stmt // by text; nil for a text that was sent once
	inTransaction bool
	lost          bool
}

// exec sends a statement, prepared if that can be.
func (p *preparer) exec(ctx context.Context, on preparable, query string, args []driver.NamedValue) (driver.Result, error) {
	statement, err := p.statement(ctx, on, query, args)
	if err != nil {
		return nil, err
	}
	if prepared, ok := statement.(driver.StmtExecContext); ok {
		return prepared.ExecContext(ctx, args)
	}
	return on.ExecContext(ctx, query, args)
}

// query is exec for a statement that returns rows.
func (p *preparer) query(ctx context.Context, on preparable, query string, args []driver.NamedValue) (driver.Rows, error) {
	statement, err := p.statement(ctx, on, query, args)
	if err != nil {
		return nil, err
	}
	if prepared, ok := statement.(driver.StmtQueryContext); ok {
		return prepared.QueryContext(ctx, args)
	}
	return on.QueryContext(ctx, query, args)
}

// A preparable connection prepares statements, and takes them as they are.
type preparable interface {
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// statement returns the prepared statement for a text, or nil if the text is to be sent as it is.
func (p *preparer) statement(ctx context.Context, on driver.ConnPrepareContext, text string, args []driver.NamedValue) (driver.Stmt, error) {
	if p.prepares == nil || p.inTransaction && !p.inside || p.lost || len(args) == 0 || !p.prepares() {
		return nil, nil
	}
	if p.statements == nil {
		p.statements = make(map[string]driver.Stmt)
	}
	s, again := p.statements[text]
	if !again && (!isFixed(text) || len(p.statements) >= maxPrepared) {
		return nil, nil
	}
	var err error
	if again && s == nil {
		s, err = on.PrepareContext(ctx, text)
	}
	if err == nil {
		p.statements[text] = s
	}
	return s, err
}

// maxPrepared is how many texts a connection knows at most. Servers have a limit for all of theirs.
const maxPrepared = 16

// isFixed reports whether a text is one statement, and has no list of placeholders, or of rows.
func isFixed(text string) bool {
	return !strings.Contains(text, "IN (?") && !strings.Contains(text, ";") &&
		!strings.Contains(text, stmt.BetweenRows) && !strings.Contains(text, " UNION ALL ")
}

// hasLost reports whether a statement has failed because it is not prepared any more, or cannot be. Then it was not
// executed, and is to be sent again as it is. Drivers that prepare by themselves prepare it again.
func (p *preparer) hasLost(err error) bool {
	if err == nil || p.inTransaction || p.isLost == nil || !p.isLost(err) {
		return false
	}
	p.lost = true
	return true
}

// isLost reports whether PostgreSQL does not know a statement, or knows another one by its name, or has plans for
// what the table was before. The reason is a DISCARD ALL, a change of the table, or a pooler that gives the
// connection another session.
func isLost(err error) bool {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return false
	}
	switch state.SQLState() {
	case "26000", // invalid_sql_statement_name
		"42P05", // duplicate_prepared_statement
		"0A000": // feature_not_supported: "cached plan must not change result type"
		return true
	default:
		return false
	}
}
