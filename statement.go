package sqllock

import (
	"encoding/json"
	"fmt"
	"slices"
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
	// expands says that lists have one placeholder each, which bind multiplies.
	expands bool
}

// compile makes a statement of a text with named parameters, once, so that
// running it costs no parsing.
func compile(text string, d dialect.Dialect) (statement, error) {
	names := make(map[string]any)
	for _, name := range []string{
		"region", "key", "holder", "client", "ttl", "left", "shift", "keys", "holders", "token", "next",
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
	for _, name := range order {
		s.names = append(s.names, name.(string))
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
	region, key, holder, client, next string
	ttl, left                         time.Duration
	token                             int64
	keys, holders                     []string
}

// args returns the values of s's parameters in order.
func (s statement) args(p params) []any {
	args := make([]any, len(s.names))
	for i, name := range s.names {
		switch name {
		case "region":
			args[i] = p.region
		case "key":
			args[i] = p.key
		case "holder":
			args[i] = p.holder
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
		case "keys":
			args[i] = s.list(p.keys)
		case "holders":
			args[i] = s.list(p.holders)
		}
	}
	return args
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
	acquire, draw, trim, peek, list, held, renew, guard, pick, renewAll, heldAll, leave statement
	remove, removeClient, pickExpired, removeExpired                                    statement
}

func compileAll(d dialect.Dialect, layout dialect.Layout, names dialect.Names) (statements, error) {
	texts := d.Statements(layout, names)
	var all statements
	for _, each := range []struct {
		text string
		into *statement
	}{
		{texts.Acquire, &all.acquire},
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
		{texts.DeleteClient, &all.removeClient},
		{texts.PickExpired, &all.pickExpired},
		{texts.DeleteExpired, &all.removeExpired},
	} {
		var err error
		if *each.into, err = compile(each.text, d); err != nil {
			return statements{}, err
		}
	}
	return all, nil
}
