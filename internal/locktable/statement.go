package locktable

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
)

// A statement is a text with positional placeholders, and the names of the parameters that stand in them, in order.
// Some databases have no statement for some purposes: its text is "".
type statement struct {
	text  string
	names []string
	// from has the place where the value of each stands: its own, or that of the same name before
	from []int
	// fixed has the values that are the same each time
	fixed []any
	// expands says that lists have one placeholder each, which bind multiplies.
	expands bool
}

// compile makes a statement of a text with named parameters, once, so that running it costs no parsing.
func compile(text string, d dialect.Dialect, region string) (statement, error) {
	names := make(map[string]any)
	for _, name := range []string{
		"region", "key", "holder", "client", "ttl", "left", "shift", "keys", "holders", "token", "next", "rows", "limit", "count", "turn",
	} {
		names[name] = name
	}
	positional, order, err := sqlx.Named(text, names)
	if err != nil {
		return statement{}, fmt.Errorf("statement %q: %w", text, err)
	}
	if d.Numbered {
		positional = sqlx.Rebind(sqlx.DOLLAR, positional)
	}
	s := statement{text: positional}
	s.fixed = make([]any, len(order))
	for i, name := range order {
		s.names = append(s.names, name.(string))
		s.from = append(s.from, slices.Index(order, name))
		if name == "region" {
			s.fixed[i] = region
		}
	}
	s.expands = !d.JSONLists && (slices.Contains(s.names, "keys") || slices.Contains(s.names, "holders"))
	return s, nil
}

// inRegion returns s for the rows of another region.
func (s statement) inRegion(region string) statement {
	s.fixed = slices.Clone(s.fixed)
	for i, name := range s.names {
		if name == "region" {
			s.fixed[i] = region
		}
	}
	return s
}

// bind returns the text to send and its arguments.
func (s statement) bind(v values) (string, []any, error) {
	if s.expands {
		return sqlx.In(s.text, s.args(v)...)
	}
	return s.text, s.args(v), nil
}

// An executor is what a statement runs on: a connection, a transaction of ours or of the user's, or a pool.
type executor interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// query runs s and gives each row that it answers to scan.
func query(ctx context.Context, db executor, s statement, v values, scan func(*sql.Rows) error) error {
	text, args, err := s.bind(v)
	if err != nil {
		return err
	}
	return queryText(ctx, db, text, args, scan)
}

// queryText is query for a text whose arguments are bound.
func queryText(ctx context.Context, db executor, text string, args []any, scan func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// queryFirst runs s, which answers one row at most, and gives it to scan.
func queryFirst(ctx context.Context, db executor, s statement, v values, scan func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, s.text, s.args(v)...)
	if err != nil {
		return err
	}
	if rows.Next() {
		err = scan(rows)
	}
	// Close reads what is left of the answer: the statement may have failed after the row. It returns nil
	// if ctx has ended and database/sql has closed rows; then Err has the reason.
	return cmp.Or(err, rows.Close(), rows.Err()) //nolint:sqlclosecheck // its error counts, and comes before Err's
}

// exec returns how many rows s affected.
func exec(ctx context.Context, db executor, s statement, v values) (int64, error) {
	text, args, err := s.bind(v)
	if err != nil {
		return 0, err
	}
	return affected(db.ExecContext(ctx, text, args...))
}

// affected returns how many rows a statement with that result affected.
func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// values are what statements may ask for.
type values struct {
	Claim
	keepFor time.Duration // if not 0, how long the row lasts from now, instead of TTL
	next    string        // the holder that a row is left to
	client  string        // what the holders of a client begin with
	token   int64
	limit   int
	rows    []Claim
	keys    []string // instead of those of rows
}

// lockKeys are the LOCK_KEYs that v is about.
func (v values) lockKeys() []string {
	if v.keys != nil {
		return v.keys
	}
	keys := make([]string, len(v.rows))
	for i, row := range v.rows {
		keys[i] = row.LockKey
	}
	return keys
}

func (v values) holders() []string {
	holders := make([]string, len(v.rows))
	for i, row := range v.rows {
		holders[i] = row.Holder
	}
	return holders
}

// ids are the rows that v is about.
func (v values) ids() map[rowID]bool {
	ids := make(map[rowID]bool, len(v.rows))
	for _, row := range v.rows {
		ids[row.id()] = true
	}
	return ids
}

// only returns v with those of its rows that are in ids.
func (v values) only(ids map[rowID]bool) values {
	some := make([]Claim, 0, len(ids))
	for _, row := range v.rows {
		if ids[row.id()] {
			some = append(some, row)
		}
	}
	v.rows = some
	return v
}

// part returns v for some of the rows, or keys, that it is about.
func (v values) part(from, to int) values {
	if v.keys != nil {
		v.keys = v.keys[from:to]
	} else {
		v.rows = v.rows[from:to]
	}
	return v
}

// parts returns v in parts of n rows, or keys, or as it is if it is about one row alone.
func (v values) parts(n int) iter.Seq[values] {
	return func(yield func(values) bool) {
		if v.len() <= n {
			yield(v)
			return
		}
		for from := 0; from < v.len(); from += n {
			if !yield(v.part(from, min(from+n, v.len()))) {
				return
			}
		}
	}
}

// len is how many rows, or keys, v is about.
func (v values) len() int {
	if v.keys != nil {
		return len(v.keys)
	}
	return len(v.rows)
}

// together are the values of one statement for many rows. In the four-column layout acquisitions share the
// time-to-live; releases need not know it.
func together(claims []Claim) values {
	v := values{rows: claims}
	for _, c := range claims {
		v.TTL = max(v.TTL, c.TTL)
	}
	return v
}

// args returns the values of s's parameters in order.
func (s statement) args(v values) []any {
	args := slices.Clone(s.fixed)
	left := cmp.Or(v.keepFor, v.TTL) // how long the row is to last from now
	for i, name := range s.names {
		if from := s.from[i]; from < i { // a conversion to any is an allocation
			args[i] = args[from]
			continue
		}
		switch name {
		case "key":
			args[i] = v.LockKey
		case "holder":
			args[i] = v.Holder
		case "client":
			args[i] = v.client
		case "ttl":
			args[i] = v.TTL.Microseconds()
		case "left":
			args[i] = left.Microseconds()
		case "shift":
			args[i] = (left - v.TTL).Microseconds()
		case "next":
			args[i] = v.next
		case "token":
			args[i] = v.token
		case "limit":
			args[i] = int64(v.limit)
		case "count":
			args[i] = int64(len(v.rows))
		case "turn":
			args[i] = v.turn
		case "rows":
			args[i] = proposed(v.rows)
		case "keys":
			args[i] = s.list(v.lockKeys())
		case "holders":
			args[i] = s.list(v.holders())
		}
	}
	return args
}

// inOrder returns rows in the order of their keys, so that processes that write many cannot deadlock.
func inOrder(rows []Claim) []*Claim {
	sorted := make([]*Claim, len(rows))
	for i := range rows {
		sorted[i] = &rows[i]
	}
	slices.SortFunc(sorted, func(a, b *Claim) int { return strings.Compare(a.LockKey, b.LockKey) })
	return sorted
}

// proposed returns the JSON that says which rows are to be acquired, or deleted.
func proposed(rows []Claim) string {
	type row struct {
		Key    string `json:"k"`
		Holder string `json:"h"`
		Left   int64  `json:"l"`
		Turn   int64  `json:"t,omitempty"`
	}
	all := make([]row, len(rows))
	for i, c := range inOrder(rows) {
		all[i] = row{c.LockKey, c.Holder, c.TTL.Microseconds(), c.turn}
	}
	const each = 128 // and a bit more than most
	var text strings.Builder
	text.Grow(each * len(rows))
	_ = json.NewEncoder(&text).Encode(all) // strings and numbers always can be
	return text.String()
}

// BetweenRows separates the rows of a text that has as many of them as there are claims. No other text has it.
const BetweenRows = "),\n("

// bindRows returns the text and arguments of s with a row of its own for each of v.rows, where the database takes no
// JSON.
func (s statement) bindRows(row statement, v values) (string, []any) {
	between := strings.Trim(BetweenRows, "()")
	if strings.HasPrefix(row.text, "SELECT ") {
		between = " UNION ALL "
	}
	rows := strings.Repeat(between+row.text, len(v.rows))
	var args []any
	for _, one := range inOrder(v.rows) {
		args = append(args, row.args(values{Claim: *one})...)
	}
	return strings.Replace(s.text, "{rows}", rows[len(between):], 1), append(args, s.args(v)...)
}

// bindMany is bind for a statement, or a message, that acquires v.rows. row is the text of one, or empty where the
// database takes JSON.
func (s statement) bindMany(row statement, v values) (string, []any, error) {
	if row.text == "" {
		return s.bind(v)
	}
	text, args := s.bindRows(row, v)
	return sqlx.In(text, args...)
}

func (s statement) list(items []string) any {
	if s.expands {
		return slices.Compact(slices.Clone(items)) // the rows of a joint claim have one holder
	}
	text, _ := json.Marshal(items) // strings always can be
	return string(text)
}

// statements are the compiled texts of one dialect, layout and table.
type statements struct {
	draw, drawOne, trim, peek, peekAll, list, listFirst, count, held, renew, pick, pickRow, pickAny, heldAll, keep statement

	// plain acquires rows, and inOrder only those whose turn is free.
	plain, inOrder acquisitions

	peekCurrent statement // see current.go
	// guards are for one row, guardsAll for several.
	guards, guardsAll                                                          guards
	pin                                                                        statement // "" if no server can say it
	renewAll, keepAll, releaseAll                                              many
	release, pickClient, deleteClient, countClient, pickExpired, deleteExpired statement
	writeNames, writeName, names, allNames, waits, oldNames, deleteNames       statement
	runs, runsOf, forgetRuns, addToName                                        statement
	cluster, clusterVariables, beforeCurrent, afterCurrent                     string
}

// acquisitions are the statements that acquire.
type acquisitions struct {
	one, all, row statement
	// oneVerified and allVerified also return the isolation in which they ran, or are "".
	oneVerified, allVerified statement
	// oneMessage and allMessage are transactions in one message each, or "". joint leaves its transaction open.
	oneMessage, allMessage, joint statement
}

// acquiring returns the statements for claims.
func (s *statements) acquiring(claims ...Claim) *acquisitions {
	for i := range claims {
		if claims[i].turn != 0 {
			return &s.inOrder
		}
	}
	return &s.plain
}

// A many is a statement that changes many rows. Where there is a pick, it must be given only rows that were picked.
// message, unless it is "", is a transaction in one message that picks the rows and changes them, or changes none if
// it cannot pick all.
type many struct{ statement, message statement }

// levels are the isolations of transactions that are sent in messages. They are "" where there are none.
type levels struct{ acquire, joint string }

// guards pin rows in a transaction of the user's: by locks, or by a change. anywhere is writing without the condition
// that the server is a member of its cluster.
type guards struct{ locking, writing, anywhere statement }

// A compiled is a text and the statement that is made of it.
type compiled struct {
	text string
	into *statement
}

// compileEach compiles texts.
func compileEach(d dialect.Dialect, region string, texts ...compiled) (err error) {
	for _, each := range texts {
		if *each.into, err = compile(each.text, d, region); err != nil {
			return err
		}
	}
	return nil
}

// compileAcquisitions compiles the texts that acquire. If verify is true, some return the
// isolation in which they ran.
func compileAcquisitions(d dialect.Dialect, layout dialect.Layout, names dialect.Names, region string, in levels, verify bool) (a acquisitions, err error) {
	texts := d.Statements(layout, names)
	all := texts.AcquireAll
	if texts.AcquireRow != "" { // bindRows fills it in
		all = strings.Replace(all, ":rows", "{rows}", 1)
	}
	var oneVerified, allVerified string
	if verify {
		oneVerified, allVerified = texts.Acquire+", "+texts.Isolation, all+", "+texts.Isolation
	}
	many := []string{all, texts.DrawOne, texts.Number, texts.HeldAll}
	if d.ReturnsHolder {
		many = many[:1]
	}
	return a, compileEach(d, region,
		compiled{texts.Acquire, &a.one},
		compiled{all, &a.all},
		compiled{texts.AcquireRow, &a.row},
		compiled{oneVerified, &a.oneVerified},
		compiled{allVerified, &a.allVerified},
		compiled{message(in.acquire, texts.Acquire, texts.Draw, texts.Outcome), &a.oneMessage},
		compiled{message(in.acquire, many...), &a.allMessage},
		compiled{begun(in.joint, many...), &a.joint},
	)
}

// compileAll compiles the texts. If verify is true, there are acquisitions that return the isolation in which they
// ran.
func compileAll(d dialect.Dialect, layout dialect.Layout, names dialect.Names, region string, in levels, verify bool) (statements, error) {
	texts := d.Statements(layout, names)
	writeNames := texts.WriteNames
	if texts.AcquireRow != "" { // bindRows fills it in
		writeNames = strings.Replace(writeNames, ":rows", "{rows}", 1)
	}
	allNames, _, _ := strings.Cut(texts.Names, " WHERE ")
	together := func(change string) string {
		if in.joint == "" || texts.PickAll == "" {
			return ""
		}
		pick := strings.Replace(texts.PickAll, ":rows", "{rows}", 1)
		return message(messageLevel(sql.LevelReadCommitted), pick, change+texts.IfAll, texts.AllPicked)
	}
	all := statements{
		cluster: texts.Cluster, clusterVariables: texts.ClusterVariables,
		beforeCurrent: texts.BeforeCurrent, afterCurrent: texts.AfterCurrent,
	}
	var err error
	if all.plain, err = compileAcquisitions(d, layout, names, region, in, verify); err != nil {
		return statements{}, err
	}
	if d.Turns(names).Begin != "" {
		if all.inOrder, err = compileAcquisitions(d.InOrder(), layout, names, region, in, verify); err != nil {
			return statements{}, err
		}
	}
	err = compileEach(d, region, []compiled{
		{texts.PeekAll, &all.peekAll},
		{texts.PeekCurrent, &all.peekCurrent},
		{texts.DrawOne, &all.drawOne},
		{texts.DeleteAll, &all.releaseAll.statement},
		{together(texts.DeleteAll), &all.releaseAll.message},
		{texts.Draw, &all.draw},
		{texts.Trim, &all.trim},
		{texts.Peek, &all.peek},
		{texts.Pin, &all.pin},
		{texts.List, &all.list},
		{texts.ListFirst, &all.listFirst},
		{texts.Count, &all.count},
		{texts.Held, &all.held},
		{texts.Renew, &all.renew},
		{texts.Guard, &all.guards.locking},
		{texts.GuardByWriting, &all.guards.writing},
		{texts.GuardAll, &all.guardsAll.locking},
		{texts.GuardAllByWriting, &all.guardsAll.writing},
		{texts.Pick, &all.pick},
		{texts.PickRow, &all.pickRow},
		{texts.PickAny, &all.pickAny},
		{texts.RenewAll, &all.renewAll.statement},
		{together(texts.RenewAll), &all.renewAll.message},
		{texts.HeldAll, &all.heldAll},
		{texts.Keep, &all.keep},
		{texts.KeepAll, &all.keepAll.statement},
		{together(texts.KeepAll), &all.keepAll.message},
		{texts.Delete, &all.release},
		{texts.PickClient, &all.pickClient},
		{texts.DeleteClient, &all.deleteClient},
		{texts.CountClient, &all.countClient},
		{texts.PickExpired, &all.pickExpired},
		{texts.DeleteExpired, &all.deleteExpired},
		{writeNames, &all.writeNames},
		{texts.WriteName, &all.writeName},
		{texts.Names, &all.names},
		{allNames, &all.allNames},
		{texts.Runs, &all.runs},
		{texts.RunsOf, &all.runsOf},
		{texts.ForgetRuns, &all.forgetRuns},
		{texts.AddToName, &all.addToName},
		{texts.Waits, &all.waits},
		{texts.OldNames, &all.oldNames},
		{texts.DeleteNames, &all.deleteNames},
	}...)
	return all, err
}

// messageLevel returns how an isolation is written in a message.
func messageLevel(level sql.IsolationLevel) string { return strings.ToUpper(level.String()) }

// message returns a transaction of the isolation, in one message: one round trip, whatever the number of statements.
// It depends on nothing that is set in the session. Empty statements are left out. Without an isolation there is
// none.
func message(level string, statements ...string) string {
	if level == "" {
		return ""
	}
	return begun(level, append(statements, "COMMIT")...)
}

// begun is message for a transaction that is left open.
func begun(level string, statements ...string) string {
	if level == "" {
		return ""
	}
	text := "SET TRANSACTION ISOLATION LEVEL " + level + ";\nSTART TRANSACTION"
	for _, s := range statements {
		if s != "" {
			text += ";\n" + s
		}
	}
	return text
}
