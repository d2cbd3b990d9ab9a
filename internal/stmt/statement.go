package stmt

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/sqltext"
)

// A Statement is a text with positional placeholders, and the names of the parameters that stand in them, in order.
// Some databases have no statement for some purposes: its text is "".
type Statement struct {
	Text  string
	names []string
	// from is where the value of each stands: at its own place, or at that of the same name before.
	from []int
	// fixed are the values that are the same each time: those of :region.
	fixed []any
	// expands says that lists have one placeholder each, which Bind multiplies.
	expands bool
}

// parameters are the names that a text may have, after a colon. [Statement.Args] has the value of each.
var parameters = []string{
	"region", "key", "holder", "client", "ttl", "left", "shift", "keys", "holders", "token", "next", "rows", "limit", "count", "turn", "bell",
}

// Compile makes a statement of a text with named parameters, once, so that running it costs no parsing.
func Compile(text string, d sqltext.Dialect, region string) (Statement, error) {
	names := make(map[string]any)
	for _, name := range parameters {
		names[name] = name
	}
	positional, order, err := sqlx.Named(text, names)
	if err != nil {
		return Statement{}, fmt.Errorf("statement %q: %w", text, err)
	}
	if d.Numbered {
		positional = sqlx.Rebind(sqlx.DOLLAR, positional)
	}
	s := Statement{Text: positional}
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

// InRegion returns s for the rows of another region.
func (s Statement) InRegion(region string) Statement {
	s.fixed = slices.Clone(s.fixed)
	for i, name := range s.names {
		if name == "region" {
			s.fixed[i] = region
		}
	}
	return s
}

// Bind returns the text to send and its arguments, with a placeholder for each item of a list if s expands.
func (s Statement) Bind(v Values) (string, []any, error) {
	if s.expands {
		return sqlx.In(s.Text, s.Args(v)...)
	}
	return s.Text, s.Args(v), nil
}

// An Executor is what a statement runs on: a connection, a transaction of ours or of the user's, or a pool.
type Executor interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Query runs s and gives each row that it answers to scan.
func Query(ctx context.Context, db Executor, s Statement, v Values, scan func(*sql.Rows) error) error {
	text, args, err := s.Bind(v)
	if err != nil {
		return err
	}
	return QueryText(ctx, db, text, args, scan)
}

// QueryText is [Query] for a text whose arguments are bound.
func QueryText(ctx context.Context, db Executor, text string, args []any, scan func(*sql.Rows) error) error {
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

// QueryFirst runs s, which answers one row at most, and gives it to scan.
func QueryFirst(ctx context.Context, db Executor, s Statement, v Values, scan func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, s.Text, s.Args(v)...)
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

// Exec returns how many rows s affected.
func Exec(ctx context.Context, db Executor, s Statement, v Values) (int64, error) {
	text, args, err := s.Bind(v)
	if err != nil {
		return 0, err
	}
	return affected(db.ExecContext(ctx, text, args...))
}

// ErrNoOutcome is why it is not known what a statement, or a message, has done.
var ErrNoOutcome = errors.New("the server did not say whether the row was acquired: a proxy may be rewriting results")

// ReadMessage sends a message, and gives the rows of its results to the functions, in order.
func ReadMessage(ctx context.Context, conn Executor, text string, args []any, scans ...func(*sql.Rows) error) error {
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	for _, scan := range scans {
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		// The last time there is none: that waits for the answer to COMMIT.
		rows.NextResultSet()
	}
	return rows.Err()
}

// affected returns how many rows a statement with that result affected.
func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Values are what statements may ask for.
type Values struct {
	Claim
	KeepFor time.Duration // if not 0, how long the row lasts from now, instead of TTL
	Next    string        // the holder that a row is left to
	Client  string        // what the holders of a client begin with
	Token   int64
	Limit   int
	Bell    string // the name of a lock, for which one who waits for it is woken
	Rows    []Claim
	Keys    []string // instead of those of rows
}

// lockKeys are the LOCK_KEYs that v is about.
func (v Values) lockKeys() []string {
	if v.Keys != nil {
		return v.Keys
	}
	keys := make([]string, len(v.Rows))
	for i, row := range v.Rows {
		keys[i] = row.LockKey
	}
	return keys
}

func (v Values) holders() []string {
	holders := make([]string, len(v.Rows))
	for i, row := range v.Rows {
		holders[i] = row.Holder
	}
	return holders
}

// IDs are the rows that v is about.
func (v Values) IDs() map[RowID]bool {
	ids := make(map[RowID]bool, len(v.Rows))
	for _, row := range v.Rows {
		ids[row.ID()] = true
	}
	return ids
}

// Only returns v with those of its rows that are in ids.
func (v Values) Only(ids map[RowID]bool) Values {
	some := make([]Claim, 0, len(ids))
	for _, row := range v.Rows {
		if ids[row.ID()] {
			some = append(some, row)
		}
	}
	v.Rows = some
	return v
}

// Part returns v for some of the rows, or keys, that it is about.
func (v Values) Part(from, to int) Values {
	if v.Keys != nil {
		v.Keys = v.Keys[from:to]
	} else {
		v.Rows = v.Rows[from:to]
	}
	return v
}

// Parts returns v in parts of n rows, or keys, or as it is if it is about one row alone.
func (v Values) Parts(n int) iter.Seq[Values] {
	return func(yield func(Values) bool) {
		if v.Len() <= n {
			yield(v)
			return
		}
		for from := 0; from < v.Len(); from += n {
			if !yield(v.Part(from, min(from+n, v.Len()))) {
				return
			}
		}
	}
}

// Len is how many rows, or keys, v is about.
func (v Values) Len() int {
	if v.Keys != nil {
		return len(v.Keys)
	}
	return len(v.Rows)
}

// Together are the values of one statement for many rows. In the four-column layout acquisitions share the
// time-to-live; releases need not know it.
func Together(claims []Claim) Values {
	v := Values{Rows: claims}
	for _, c := range claims {
		v.TTL = max(v.TTL, c.TTL)
	}
	return v
}

// Args returns the values of s's parameters in order.
func (s Statement) Args(v Values) []any {
	args := slices.Clone(s.fixed)
	left := cmp.Or(v.KeepFor, v.TTL) // how long the row is to last from now
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
			args[i] = v.Client
		case "ttl":
			args[i] = v.TTL.Microseconds()
		case "left":
			args[i] = left.Microseconds()
		case "shift":
			args[i] = (left - v.TTL).Microseconds()
		case "next":
			args[i] = v.Next
		case "token":
			args[i] = v.Token
		case "limit":
			args[i] = int64(v.Limit)
		case "count":
			args[i] = int64(len(v.Rows))
		case "turn":
			args[i] = v.Turn
		case "bell":
			args[i] = v.Bell
		case "rows":
			args[i] = proposed(v.Rows)
		case "keys":
			args[i] = s.list(v.lockKeys())
		case "holders":
			args[i] = s.list(v.holders())
		case "region": // is fixed
		default:
			panic("no value for the parameter " + name) // as NULL it would match no row
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
		all[i] = row{c.LockKey, c.Holder, c.TTL.Microseconds(), c.Turn}
	}
	const each = 128 // and a bit more than most
	var text strings.Builder
	text.Grow(each * len(rows))
	_ = json.NewEncoder(&text).Encode(all) // strings and numbers always can be
	return text.String()
}

// BetweenRows separates the rows of a text that has as many of them as there are claims. No other text has it.
const BetweenRows = "),\n("

// bindRows returns the text and arguments of s with a row of its own for each of v.Rows, where the database takes no
// JSON.
func (s Statement) bindRows(row Statement, v Values) (string, []any) {
	between := strings.Trim(BetweenRows, "()")
	if strings.HasPrefix(row.Text, "SELECT ") {
		between = " UNION ALL "
	}
	rows := strings.Repeat(between+row.Text, len(v.Rows))
	var args []any
	for _, one := range inOrder(v.Rows) {
		args = append(args, row.Args(Values{Claim: *one})...)
	}
	return strings.Replace(s.Text, "{rows}", rows[len(between):], 1), append(args, s.Args(v)...)
}

// BindMany is [Statement.Bind] for a statement, or a message, that acquires v.Rows. row is the text of one, or empty where
// the database takes JSON.
func (s Statement) BindMany(row Statement, v Values) (string, []any, error) {
	if row.Text == "" {
		return s.Bind(v)
	}
	text, args := s.bindRows(row, v)
	return sqlx.In(text, args...)
}

func (s Statement) list(items []string) any {
	if s.expands {
		return slices.Compact(slices.Clone(items)) // the rows of a joint claim have one holder
	}
	text, _ := json.Marshal(items) // strings always can be
	return string(text)
}
