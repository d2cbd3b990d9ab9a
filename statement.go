package sqllock

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
)

// A statement is a text with positional placeholders, and the names of the
// parameters that stand in them, in order. Some databases have no statement for
// some purposes: its text is "".
type statement struct {
	text  string
	names []string
	// from has the place where the value of each stands: its own, or that of the same
	// name before
	from []int
	// fixed has the values that are the same each time
	fixed []any
	// expands says that lists have one placeholder each, which bind multiplies.
	expands bool
}

// compile makes a statement of a text with named parameters, once, so that
// running it costs no parsing.
func compile(text string, d dialect.Dialect, region string) (statement, error) {
	names := make(map[string]any)
	for _, name := range []string{
		"region", "key", "holder", "client", "ttl", "left", "shift", "keys", "holders", "token", "next", "rows",
	} {
		names[name] = name
	}
	positional, order, err := sqlx.Named(text, names)
	if err != nil {
		return statement{}, fmt.Errorf("sqllock: statement %q: %w", text, err)
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

// bind returns the text to send and its arguments.
func (s statement) bind(p params) (string, []any, error) {
	if s.expands {
		return sqlx.In(s.text, s.args(p)...)
	}
	return s.text, s.args(p), nil
}

// params are the values that statements may ask for.
type params struct {
	name                          string // the key as the caller wrote it, for errors
	lockKey, holder, client, next string
	ttl, left                     time.Duration
	token                         int64
	keys, holders                 []string
	rows                          []params
	sends                         *int // how often holder or rows were sent, if it is to be counted
}

// A rowID is a row of the region as one holder knows it. A result that is about many rows
// is matched by both: one holder may be in the rows of several keys.
type rowID struct{ lockKey, holder string }

func (p params) id() rowID { return rowID{p.lockKey, p.holder} }

// listed returns p with the keys and holders of its rows, unless it has some.
func (p params) listed() params {
	if p.keys != nil || p.rows == nil {
		return p
	}
	p.keys, p.holders = make([]string, len(p.rows)), make([]string, len(p.rows))
	for i, one := range p.rows {
		p.keys[i], p.holders[i] = one.lockKey, one.holder
	}
	return p
}

// only returns p with those of its rows that are in ids.
func (p params) only(ids map[rowID]bool) params {
	some := p
	some.keys, some.holders, some.rows = nil, nil, make([]params, 0, len(ids))
	for _, one := range p.rows {
		if ids[one.id()] {
			some.rows = append(some.rows, one)
		}
	}
	return some
}

// args returns the values of s's parameters in order.
func (s statement) args(p params) []any {
	args := slices.Clone(s.fixed)
	for i, name := range s.names {
		if from := s.from[i]; from < i { // a conversion to any is an allocation
			args[i] = args[from]
			continue
		}
		switch name {
		case "key":
			args[i] = p.lockKey
		case "holder":
			args[i] = p.counted(p.holder)
		case "client":
			args[i] = p.client
		case "ttl":
			args[i] = p.ttl.Microseconds()
		case "left":
			args[i] = p.left.Microseconds()
		case "shift":
			args[i] = (p.left - p.ttl).Microseconds()
		case "next":
			args[i] = p.next
		case "token":
			args[i] = p.token
		case "rows":
			args[i] = p.counted(proposed(p.rows))
		case "keys":
			p = p.listed()
			args[i] = s.list(p.keys)
		case "holders":
			p = p.listed()
			args[i] = s.list(p.holders)
		}
	}
	return args
}

// inOrder returns rows in the order of their keys, so that processes that write many do
// not wait for each other in circles.
func inOrder(rows []params) []*params {
	sorted := make([]*params, len(rows))
	for i := range rows {
		sorted[i] = &rows[i]
	}
	slices.SortFunc(sorted, func(a, b *params) int { return strings.Compare(a.lockKey, b.lockKey) })
	return sorted
}

// proposed returns the JSON that says which rows are to be acquired, or deleted.
func proposed(rows []params) string {
	type row struct {
		Key    string `json:"k"`
		Holder string `json:"h"`
		Left   int64  `json:"l"`
	}
	all := make([]row, len(rows))
	for i, p := range inOrder(rows) {
		all[i] = row{p.lockKey, p.holder, p.left.Microseconds()}
	}
	const each = 128 // and a bit more than most
	var text strings.Builder
	text.Grow(each * len(rows))
	_ = json.NewEncoder(&text).Encode(all) // strings and numbers always can be
	return text.String()
}

// bindRows returns the text and arguments of s with a row of its own for each of
// p.rows, where the database takes no JSON.
func (s statement) bindRows(row statement, p params) (string, []any) {
	rows := strings.Repeat(", "+row.text, len(p.rows))
	var args []any
	for _, one := range inOrder(p.rows) {
		args = append(args, row.args(*one)...)
	}
	return strings.Replace(s.text, "{rows}", rows[len(", "):], 1), append(args, s.args(p)...)
}

func (s statement) list(items []string) any {
	if s.expands {
		return items
	}
	text, _ := json.Marshal(items) // strings always can be
	return string(text)
}

// statements are the compiled texts of one dialect, layout and table.
type statements struct {
	acquire, acquireAll, acquireRow, draw, drawOne, trim, peek, peekAll, list, held, renew, guard, pick, renewAll, heldAll, leave statement
	remove, removeAll, pickClient, removeClient, countClient, pickExpired, removeExpired                                          statement
}

// constant returns the frequent texts that are the same for each execution.
func (s statements) constant() (texts []string) {
	for _, one := range []statement{
		s.acquire, s.acquireAll, s.draw, s.drawOne, s.peek, s.peekAll, s.held, s.heldAll,
		s.renew, s.renewAll, s.pick, s.leave, s.remove, s.removeAll,
	} {
		if !one.expands && !strings.Contains(one.text, "{rows}") {
			texts = append(texts, one.text)
		}
	}
	return texts
}

func compileAll(d dialect.Dialect, layout dialect.Layout, names dialect.Names, region string) (statements, error) {
	texts := d.Statements(layout, names)
	acquireAll := texts.AcquireAll
	if texts.AcquireRow != "" { // bindRows fills it in
		acquireAll = strings.Replace(acquireAll, ":rows", "{rows}", 1)
	}
	var all statements
	for _, each := range []struct {
		text string
		into *statement
	}{
		{texts.Acquire, &all.acquire},
		{acquireAll, &all.acquireAll},
		{texts.AcquireRow, &all.acquireRow},
		{texts.PeekAll, &all.peekAll},
		{texts.DrawOne, &all.drawOne},
		{texts.DeleteAll, &all.removeAll},
		{texts.Draw, &all.draw},
		{texts.Trim, &all.trim},
		{texts.Peek, &all.peek},
		{texts.List, &all.list},
		{texts.Held, &all.held},
		{texts.Renew, &all.renew},
		{texts.Guard, &all.guard},
		{texts.Pick, &all.pick},
		{texts.RenewAll, &all.renewAll},
		{texts.HeldAll, &all.heldAll},
		{texts.Leave, &all.leave},
		{texts.Delete, &all.remove},
		{texts.PickClient, &all.pickClient},
		{texts.DeleteClient, &all.removeClient},
		{texts.CountClient, &all.countClient},
		{texts.PickExpired, &all.pickExpired},
		{texts.DeleteExpired, &all.removeExpired},
	} {
		var err error
		if *each.into, err = compile(each.text, d, region); err != nil {
			return statements{}, err
		}
	}
	return all, nil
}
