// Package names reads and writes the table of names. It has keys as users wrote them, what processes call themselves, what
// they wait for, the times-to-live of their leases, and how runs of jobs ended.
//
// The table is optional: if it is missing, or cannot be read or written, there are no names, and it is left alone for a
// while. No error of it reaches a caller.
//
//	table.go, access.go   the table; how long it is left alone after an error
//	text.go               how a text stands in NAME
//	names.go, process.go  names of keys; what processes call themselves
//	waits.go, ttl.go, runs.go   long waits, times-to-live, and runs of jobs
//
// The README beside this file says why.
package names

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/transaction"
)

// A Table is the table of names as one client in one region uses it. All methods are safe for concurrent use.
type Table struct {
	statements statements
	region     string
	client     string // the client id

	reading, writing, deleting access
	processes                  processes
	leases                     leases
}

// Settings are what a [Table] is made of.
type Settings struct {
	Pool    transaction.Pool
	Server  dbcall.Server
	Texts   sqltext.Statements
	Dialect sqltext.Dialect
	Region  string
	Client  string // the client id
}

// New returns the table.
func New(s Settings) (*Table, error) {
	t := &Table{region: s.Region, client: s.Client}
	t.reading = access{server: s.Server, try: s.Pool.Try}
	t.writing = access{server: s.Server, try: s.Pool.TryOutside}
	t.deleting = access{server: s.Server, try: s.Pool.TryOutside}
	return t, t.statements.compile(s.Texts, s.Dialect, s.Region)
}

// statements are those of one dialect and table.
type statements struct {
	write, writeRow, add stmt.Statement
	old, delete, forget  stmt.Statement

	names, all          query
	waits, runs, runsOf query
}

// A query answers REGION, ID and NAME of rows, and, if aged is true, how long ago they were written.
type query struct {
	stmt.Statement

	aged bool
}

func (s *statements) compile(texts sqltext.Statements, d sqltext.Dialect, region string) error {
	write := texts.WriteNames
	if texts.WriteName != "" { // BindMany fills it in
		write = strings.Replace(write, ":rows", "{rows}", 1)
	}
	all, _, _ := strings.Cut(texts.Names, " WHERE ")
	s.waits.aged, s.runs.aged, s.runsOf.aged = true, true, true
	return stmt.CompileEach(d, region,
		stmt.Text{Text: write, Into: &s.write},
		stmt.Text{Text: texts.WriteName, Into: &s.writeRow},
		stmt.Text{Text: texts.AddToName, Into: &s.add},
		stmt.Text{Text: texts.OldNames, Into: &s.old},
		stmt.Text{Text: texts.DeleteNames, Into: &s.delete},
		stmt.Text{Text: texts.ForgetRuns, Into: &s.forget},
		stmt.Text{Text: texts.Names, Into: &s.names.Statement},
		stmt.Text{Text: all, Into: &s.all.Statement},
		stmt.Text{Text: texts.Waits, Into: &s.waits.Statement},
		stmt.Text{Text: texts.Runs, Into: &s.runs.Statement},
		stmt.Text{Text: texts.RunsOf, Into: &s.runsOf.Statement},
	)
}

// What the IDs of rows begin with.
const (
	keyID     = "key:"     // and a LOCK_KEY
	processID = "process:" // and a client id
	ttlID     = "ttl:"     // and a client id
	waitID    = "wait:"    // and what a registry has in place of a CLIENT_ID
	runID     = "run:"     // and a LOCK_KEY
	skipID    = "skip:"    // and a LOCK_KEY
)

// timeout limits a statement that writes rows, or reads many.
const timeout = 2 * time.Second

// A note is one row of the table.
type note struct {
	region, id string
	text       string
	age        time.Duration // since it was written; of use if the query is aged
}

// read returns the rows that q answers.
func (t *Table) read(ctx context.Context, limit time.Duration, q query, ids []string) (notes []note, err error) {
	return send(ctx, &t.reading, limit, func(ctx context.Context, db stmt.Executor) (notes []note, err error) {
		err = stmt.Query(ctx, db, q.Statement, stmt.Values{Keys: ids}, func(rows *sql.Rows) error {
			var n note
			var age sql.NullInt64
			columns := []any{&n.region, &n.id, &n.text, &age}
			if !q.aged {
				columns = columns[:3]
			}
			if err := rows.Scan(columns...); err != nil {
				return err
			}
			n.text, n.age = decode(n.text), max(stmt.Micros(age), 0)
			notes = append(notes, n)
			return nil
		})
		return notes, err
	})
}

// write writes rows, which have ID and NAME in place of LOCK_KEY and CLIENT_ID, and reports whether it has.
func (t *Table) write(ctx context.Context, rows []stmt.Claim) bool {
	_, err := send(ctx, &t.writing, timeout, func(ctx context.Context, db stmt.Executor) (none struct{}, err error) {
		text, args, err := t.statements.write.BindMany(t.statements.writeRow, stmt.Values{Rows: rows}) // in the order of IDs
		if err == nil {
			_, err = db.ExecContext(ctx, text, args...)
		}
		return none, err
	})
	return err == nil
}
