package probe

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/transaction"
)

// An inspector asks a database, on one connection, what it is and what its tables are like.
type inspector struct {
	db      *sql.Conn
	dialect sqltext.Dialect
	names   sqltext.Names

	ascii      bool // whether all LOCK_KEYs and the region are ASCII
	unverified bool // whether the server may be one that sqllock does not support
}

// A finding is what the database says of itself and of the tables.
type finding struct {
	server string // its name and version
	layout dialect.Layout
	// collation is that of LOCK_KEY if it takes different keys for one, or "".
	collation string
	key       string // the unique index by which rows are looked up, or "" for the primary key
	faults    []Fault
	// regionFirst reports whether the first column of that is REGION.
	regionFirst bool
	// sequence reports whether fencing tokens come from a sequence of MariaDB, or from nowhere on a MariaDB, so that
	// an acquisition is one statement. It is false on Galera, which may repeat such a statement after it has sent the
	// first result.
	sequence    bool
	partitioned bool     // whether the table has partitions
	cluster     *Cluster // nil if the server did not answer that
}

// Faults returns how the tables of a prefix are not what the protocol needs. plain reports whether keys are stored
// as they are. Its error is that of [Question.Ask] for other reasons: the table is missing, or the server must not be used.
func Faults(ctx context.Context, db *sql.DB, d sqltext.Dialect, names sqltext.Names, plain, unverified bool) ([]Fault, error) {
	found, err := dbcall.CallInTime(ctx, dbcall.ServerOf(ctx, d, names), Opening, 0, func(ctx context.Context) (finding, error) {
		return transaction.On(ctx, transaction.Pool{DB: db, Dialect: &d}, func(conn *sql.Conn) (finding, error) {
			return inspector{db: conn, dialect: d, names: names, ascii: !plain, unverified: unverified}.look(ctx)
		})
	}, nil)
	return found.faults, err
}

// inspect returns what it finds, or an error if the server needs another dialect or is not supported, the table is
// missing or is not what the protocol needs, there is nothing to draw fencing tokens from, or the server is not a
// working member of its cluster.
func (i inspector) inspect(ctx context.Context) (finding, error) {
	found, err := i.look(ctx)
	if err == nil {
		err = refusal(found.faults)
	}
	return found, err
}

// look is inspect, except that faults of the tables are no error.
func (i inspector) look(ctx context.Context) (found finding, err error) {
	seen, err := i.readTable(ctx)
	if err != nil {
		if wrong := i.checkServer(ctx, i.serverOf(ctx, err)); wrong != nil {
			return found, wrong
		}
		err = fmt.Errorf("read %s: %w%s", i.names.Lock, err, i.hint())
		if _, problem := i.cluster(ctx); errors.Is(problem, ErrNotAMember) {
			// Even if the table is missing: it must not be created there.
			err = &dbcall.Error{Kind: dbcall.Failed, Err: fmt.Errorf("%w: %w", problem, err)}
		}
		return found, err
	}
	if err := i.checkServer(ctx, seen.server); err != nil {
		return found, err
	}
	if err := i.checkSession(seen); err != nil {
		return found, err
	}
	found.server = seen.server
	if missing := i.missing(seen.columns); missing != nil {
		found.faults = []Fault{*missing}
		return found, nil
	}
	found.layout = dialect.Spring6
	if has(seen.columns, "EXPIRED_AFTER") {
		found.layout = dialect.Spring7
	}
	if err := i.addFaults(ctx, &found); err != nil {
		return found, err
	}
	found.cluster, err = i.cluster(ctx)
	if found.cluster != nil && found.cluster.Galera {
		if found.sequence {
			found.faults = append(found.faults, i.galeraFault())
		}
		found.sequence = false
	}
	if i.names.Fence == "" {
		found.sequence = isMariaDB(seen.server) && found.cluster != nil && !found.cluster.Galera
	}
	return found, err
}

// addFaults asks for the catalog, and for the source of fencing tokens.
func (i inspector) addFaults(ctx context.Context, found *finding) error {
	known, err := i.readCatalog(ctx)
	if err != nil {
		return err
	}
	if known != nil {
		known.judge(found.layout, found.server)
		found.collation, found.faults = known.merging(), known.faults
		found.key, found.regionFirst = known.ownKey()
		found.partitioned = known.isPartitioned
	}
	if slices.ContainsFunc(found.faults, func(f Fault) bool { return f.Table == i.names.Fence }) {
		return nil // there is something that may not even be understood
	}
	sequence, faults, err := i.findFence(ctx, found.layout)
	found.sequence, found.faults = sequence, append(found.faults, faults...)
	return err
}

// hint says what may be wrong with a prefix that names a schema.
func (i inspector) hint() string {
	if i.names.Schema == "" {
		return ""
	}
	return " (the schema " + i.names.Schema + " of the prefix stands in statements without quotes: a reserved word cannot be used, " +
		"and PostgreSQL reads it in lower case)"
}

func (i inspector) galeraFault() Fault {
	return Fault{Table: i.names.Fence, Text: "is a sequence, which each node of Galera counts by itself", Cure: "replace it by a table, as docs/schema.md says (MariaDB's sequence)"}
}

// cluster returns what the server says of its cluster, and an error if it must not be used. It returns nil for a
// server that does not answer that: it may belong to none.
func (i inspector) cluster(ctx context.Context) (*Cluster, error) {
	found, err := ReadCluster(ctx, i.db, i.dialect)
	if i.dialect.Classify(err) == sqltext.Closed {
		return nil, err
	}
	if err != nil {
		return nil, ctx.Err()
	}
	return &found, found.Problem()
}

// A description is what the server says of itself, of the session and of the table.
type description struct {
	server  string // its name and version
	session string // what is wrong with it, or ""
	columns []string
}

// readTable asks the server to describe the table.
func (i inspector) readTable(ctx context.Context) (d description, err error) {
	rows, err := i.db.QueryContext(ctx, i.dialect.Statements(dialect.Spring6, i.names).Columns)
	if err != nil {
		return d, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	if d.columns, err = rows.Columns(); err != nil {
		return d, err
	}
	// They are NULL where MariaDB's EMPTY_STRING_IS_NULL has '' read so.
	var server, session sql.NullString
	into := []any{&server, &session}
	d.columns = d.columns[len(into):]
	for range d.columns {
		into = append(into, new(any)) // NULL
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return d, err
		}
	}
	d.server, d.session = server.String, session.String
	return d, rows.Err()
}

// serverOf returns the name and version of a server that refused the first statement with err, or "". It may be of
// another kind, on which the table must not be created.
func (i inspector) serverOf(ctx context.Context, err error) string {
	if class := i.dialect.Classify(err); class != sqltext.Unknown && class != sqltext.Schema {
		return "" // the dialect knows what is wrong, or the connection is closed
	}
	return i.askServer(ctx)
}

// askServer asks the server for its name and version, which is "" if it does not answer.
func (i inspector) askServer(ctx context.Context) (server string) {
	version := func(d sqltext.Dialect) string { return d.Statements(dialect.Spring6, i.names).Version }
	// With the wrong dialect the server may not even understand the question. MySQL and PostgreSQL understand the
	// second one.
	for _, question := range []string{version(i.dialect), "SELECT version()", version(sqltext.SQLite())} {
		if err := i.db.QueryRowContext(ctx, question).Scan(&server); err == nil {
			return server
		}
	}
	return ""
}

func isMariaDB(server string) bool { return strings.Contains(server, "MariaDB") }

// HasSequence reports whether fencing tokens come from a sequence of MariaDB, for a caller who gives the layout
// when a table is opened. It returns an error of kind [dbcall.WrongTable] if that sequence must not be used.
func HasSequence(ctx context.Context, db *sql.DB, d sqltext.Dialect, names sqltext.Names) (bool, error) {
	return dbcall.CallInTime(ctx, dbcall.ServerOf(ctx, d, names), Opening, 0, func(ctx context.Context) (bool, error) {
		return transaction.On(ctx, transaction.Pool{DB: db, Dialect: &d}, func(conn *sql.Conn) (bool, error) {
			i := inspector{db: conn, dialect: d, names: names}
			sequence, faults, err := i.findFence(ctx, dialect.Spring7)
			if err == nil && sequence {
				// That it is a working member is not checked with a given layout.
				if cluster, _ := i.cluster(ctx); cluster != nil && cluster.Galera {
					faults = append(faults, i.galeraFault())
				}
			}
			return sequence, cmp.Or(err, refusal(faults))
		})
	}, nil)
}

// findFence checks that there is what fencing tokens are drawn from, and reports whether it is a sequence of MariaDB.
func (i inspector) findFence(ctx context.Context, layout dialect.Layout) (sequence bool, _ []Fault, err error) {
	if i.names.Fence == "" {
		return false, nil, nil
	}
	rows, err := i.db.QueryContext(ctx, i.dialect.Statements(layout, i.names).Fence)
	if err != nil {
		err = fmt.Errorf("read %s: %w", i.names.Fence, err)
		if i.dialect.Classify(err) == sqltext.Schema {
			kind := dbcall.NoFenceOfFive
			if layout == dialect.Spring6 {
				kind = dbcall.NoFence
			}
			err = &dbcall.Error{Kind: kind, Err: err, Prefix: dbcall.PrefixOf(i.names)}
		}
		return false, nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	c := catalog{inspector: i}
	for rows.Next() {
		row, err := scanByName(rows)
		if err != nil {
			return false, nil, err
		}
		if definition, ok := row["Create Table"]; ok && !autoIDCache.MatchString(text(definition)) {
			c.addFault("FENCE", "lacks AUTO_ID_CACHE 1, so that each server of TiDB would draw fencing tokens from numbers of its own, and they would not rise",
				"replace it as docs/clusters.md says (TiDB)")
		}
		if cache, ok := row["cache_size"]; ok && i.dialect.Name == sqltext.MySQL().Name {
			sequence = true
			c.judgeSequence(numbers{text(row["increment"]), text(cache), text(row["cycle_option"]), text(row["minimum_value"]), text(row["maximum_value"])})
		}
	}
	return sequence, c.faults, rows.Err()
}

// autoIDCache matches the option in what TiDB's SHOW CREATE TABLE returns.
var autoIDCache = regexp.MustCompile(`AUTO_ID_CACHE\s*=?\s*1\b`)

// scanByName scans a row into a map by the names of its columns.
func scanByName(rows *sql.Rows) (map[string]any, error) {
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	into := make([]any, len(names))
	for i := range into {
		into[i] = new(any)
	}
	err = rows.Scan(into...)
	row := make(map[string]any, len(names))
	for i, name := range names {
		row[name] = *into[i].(*any)
	}
	return row, err
}

// text returns a value that a driver returned as bytes or as a number.
func text(value any) string {
	if bytes, ok := value.([]byte); ok {
		return string(bytes)
	}
	return fmt.Sprint(value)
}

// missing returns a fault if the table lacks a column, or nil.
func (i inspector) missing(columns []string) *Fault {
	for _, name := range []string{"LOCK_KEY", "REGION", "CLIENT_ID", "CREATED_DATE"} {
		if !has(columns, name) {
			return &Fault{Table: i.names.Lock, Text: "has no column " + name + ", as a lock table of Spring Integration or of `sqllock migrate up` has", Cure: "name another table by Prefix"}
		}
	}
	return nil
}

func has(columns []string, name string) bool {
	return slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, name) })
}

// checkSession returns an error if a key, or the region, could be written otherwise than it is read by others. That
// does not concern ASCII, which is the same everywhere.
func (i inspector) checkSession(d description) error {
	if i.ascii || d.session == "" {
		return nil
	}
	return &dbcall.Error{Kind: dbcall.WrongSession, Err: fmt.Errorf("the session translates text, so a key would be another one for other sessions: %s", d.session)}
}

func wrongTable(format string, args ...any) error {
	return &dbcall.Error{Kind: dbcall.WrongTable, Err: fmt.Errorf(format, args...)}
}
