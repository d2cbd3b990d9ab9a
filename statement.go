package sqllock

import (
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
)

// A statement is a text with positional placeholders, and the names of the
// parameters that stand in them, in order.
type statement struct {
	text  string
	names []string
}

// compile makes a statement of a text with named parameters, once, so that
// running it costs no parsing.
func compile(text string, numbered bool) (statement, error) {
	names := make(map[string]any)
	for _, name := range []string{"region", "key", "holder", "client", "ttl", "left", "shift"} {
		names[name] = name
	}
	positional, order, err := sqlx.Named(text, names)
	if err != nil {
		return statement{}, fmt.Errorf("sqllock: statement %q: %w", text, err)
	}
	if numbered {
		positional = sqlx.Rebind(sqlx.DOLLAR, positional)
	}
	s := statement{text: positional}
	for _, name := range order {
		s.names = append(s.names, name.(string))
	}
	return s, nil
}

// params are the values that statements may ask for.
type params struct {
	region, key, holder, client string
	ttl, left                   time.Duration
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
		}
	}
	return args
}

// statements are the compiled texts of one dialect, layout and table.
type statements struct {
	acquire, peek, list, held, renew, remove, removeClient, removeExpired statement
}

func compileAll(d dialect.Dialect, layout dialect.Layout, table string) (statements, error) {
	texts := d.Statements(layout, table)
	var all statements
	for _, each := range []struct {
		text string
		into *statement
	}{
		{texts.Acquire, &all.acquire},
		{texts.Peek, &all.peek},
		{texts.List, &all.list},
		{texts.Held, &all.held},
		{texts.Renew, &all.renew},
		{texts.Delete, &all.remove},
		{texts.DeleteClient, &all.removeClient},
		{texts.DeleteExpired, &all.removeExpired},
	} {
		var err error
		if *each.into, err = compile(each.text, d.Numbered); err != nil {
			return statements{}, err
		}
	}
	return all, nil
}
