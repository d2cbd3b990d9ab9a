package locktable

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/sqllock/sqllock/dialect"
)

// An inspector asks a database what it is and what its tables are like.
type inspector struct {
	db      *sql.DB
	dialect dialect.Dialect
	names   dialect.Names

	ascii      bool // whether all LOCK_KEYs and the region are ASCII
	unverified bool // whether the server may be one that sqllock does not support
}

// A finding is what the database says of itself and of the lock table.
type finding struct {
	server string // its name and version
	layout dialect.Layout
	// collation is that of LOCK_KEY if it takes different keys for one, or "".
	collation string
	// sequence reports whether fencing tokens come from a sequence of MariaDB, or from nowhere on a MariaDB, so that
	// an acquisition is one statement. It is false on Galera, which may repeat such a statement after it has sent the
	// first result.
	sequence bool
	cluster  *Cluster // nil if the server did not answer that
}

// inspect returns what it finds, or an error if the server needs another dialect or is not supported, the table is
// missing or has other columns, there is nothing to draw fencing tokens from, or the server is not a working member
// of its cluster.
func (i inspector) inspect(ctx context.Context) (found finding, err error) {
	seen, err := i.readTable(ctx)
	if i.dialect.Classify(err) == dialect.NoKey {
		return found, wrongTable("%s has no primary key (LOCK_KEY, REGION), or is a view: create the key, or name the table itself by Prefix: %w", i.names.Lock, err)
	}
	if err != nil {
		if wrong := i.checkServer(ctx, i.serverOf(ctx, err)); wrong != nil {
			return found, wrong
		}
		err = fmt.Errorf("read %s: %w%s", i.names.Lock, err, i.hint())
		if _, problem := i.cluster(ctx); errors.Is(problem, errNotAMember) {
			// Even if the table is missing: it must not be created there.
			err = &Error{opening.op, Failed, fmt.Errorf("%w: %w", problem, err)}
		}
		return found, err
	}
	if err := i.checkServer(ctx, seen.server); err != nil {
		return found, err
	}
	layout, err := i.checkTable(seen)
	if err != nil {
		return found, err
	}
	sequence, err := i.findFence(ctx, layout)
	if err != nil {
		return found, err
	}
	cluster, err := i.cluster(ctx)
	if err == nil && sequence {
		err = i.checkCluster(cluster)
	}
	if i.names.Fence == "" {
		sequence = isMariaDB(seen.server) && cluster != nil && !cluster.Galera
	}
	return finding{seen.server, layout, seen.collation, sequence, cluster}, err
}

// hint says what may be wrong with a prefix that names a schema.
func (i inspector) hint() string {
	if i.names.Schema == "" {
		return ""
	}
	return " (the schema " + i.names.Schema + " of the prefix stands in statements without quotes: a reserved word cannot be used, " +
		"and PostgreSQL reads it in lower case)"
}

// checkCluster returns an error if a sequence must not be used on the server.
func (i inspector) checkCluster(cluster *Cluster) error {
	if cluster == nil || !cluster.Galera {
		return nil
	}
	return wrongTable("%s is a sequence, which each node of Galera counts by itself: "+
		"replace it by a table, as docs/schema.md says (MariaDB's sequence)", i.names.Fence)
}

// cluster returns what the server says of its cluster, and an error if it must not be used. It returns nil for a
// server that does not answer that: it may belong to none.
func (i inspector) cluster(ctx context.Context) (*Cluster, error) {
	found, err := ReadCluster(ctx, i.db, i.dialect)
	if err != nil {
		return nil, ctx.Err()
	}
	return &found, found.Problem()
}

// A description is what the server says of itself, of the session and of the table. What is wrong with the latter two
// says so; "" is right.
type description struct {
	server             string // its name and version
	session, table     string
	charset, collation string // of LOCK_KEY, if they are not those that every key survives
	columns            []*sql.ColumnType
}

// readTable has the server describe the table.
func (i inspector) readTable(ctx context.Context) (d description, err error) {
	rows, err := i.db.QueryContext(ctx, i.dialect.Statements(dialect.Spring6, i.names).Columns)
	if err != nil {
		return d, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	if d.columns, err = rows.ColumnTypes(); err != nil {
		return d, err
	}
	into := []any{&d.server, &d.session, &d.table, &d.charset, &d.collation}
	d.columns = d.columns[len(into):]
	for range d.columns {
		into = append(into, new(any)) // NULL
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return d, err
		}
	}
	return d, rows.Err()
}

// serverOf returns the name and version of a server that refused the first statement with err, or "". It may be of
// another kind, on which the table must not be created.
func (i inspector) serverOf(ctx context.Context, err error) string {
	if class := i.dialect.Classify(err); class != dialect.Unknown && class != dialect.Schema || i.db.Stats().OpenConnections == 0 {
		return "" // the dialect knows what is wrong, or there is no server to ask
	}
	return i.askServer(ctx)
}

// askServer asks the server for its name and version, which is "" if it does not answer.
func (i inspector) askServer(ctx context.Context) (server string) {
	version := func(d dialect.Dialect) string { return d.Statements(dialect.Spring6, i.names).Version }
	// With the wrong dialect the server may not even understand the question. MySQL and PostgreSQL understand the
	// second one.
	for _, question := range []string{version(i.dialect), "SELECT version()", version(dialect.SQLite())} {
		if err := i.db.QueryRowContext(ctx, question).Scan(&server); err == nil {
			return server
		}
	}
	return ""
}

func isMariaDB(server string) bool { return strings.Contains(server, "MariaDB") }

// HasSequence reports whether fencing tokens come from a sequence of MariaDB, for a caller who gives the layout to
// [Open]. It returns an error of kind [WrongTable] if that sequence must not be used.
func HasSequence(ctx context.Context, db *sql.DB, d dialect.Dialect, names dialect.Names) (bool, error) {
	return callAlone(ctx, &Table{errors: d.Classify, patience: PatienceOf(ctx)}, opening, 0, func(ctx context.Context) (bool, error) {
		i := inspector{db: db, dialect: d, names: names}
		sequence, err := i.findFence(ctx, dialect.Spring7)
		if err == nil && sequence {
			cluster, _ := i.cluster(ctx) // that it is a working member is not checked with a given layout
			err = i.checkCluster(cluster)
		}
		return sequence, err
	}, nil)
}

// findFence checks that there is what fencing tokens are drawn from, and reports whether it is a sequence of MariaDB.
func (i inspector) findFence(ctx context.Context, layout dialect.Layout) (sequence bool, err error) {
	if i.names.Fence == "" {
		return false, nil
	}
	rows, err := i.db.QueryContext(ctx, i.dialect.Statements(layout, i.names).Fence)
	if err != nil {
		err = fmt.Errorf("read %s: %w", i.names.Fence, err)
		if i.dialect.Classify(err) == dialect.Schema {
			kind := NoFenceOfFive
			if layout == dialect.Spring6 {
				kind = NoFence
			}
			err = &Error{opening.op, kind, err}
		}
		return false, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	for rows.Next() {
		row, broken := scanByName(rows)
		if broken != nil {
			return false, broken
		}
		if definition, ok := row["Create Table"]; ok && !autoIDCache.MatchString(text(definition)) {
			err = wrongTable("%s lacks AUTO_ID_CACHE 1, so that each server of TiDB would draw fencing tokens from numbers of its own, and they would not rise: "+
				"replace it as docs/clusters.md says (TiDB)", i.names.Fence)
		}
		if cache, ok := row["cache_size"]; ok && i.dialect.Name == dialect.MySQL().Name {
			sequence = true
			err = checkSequence(i.names.Fence, text(cache), text(row["increment"]), text(row["cycle_option"]))
		}
	}
	return sequence, errors.Join(err, rows.Err())
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

// checkSequence checks a sequence of MariaDB. Numbers that are cached are in the memory of one server: a replica that
// is promoted might give lower ones.
func checkSequence(name, cache, increment, cycle string) error {
	if cache == "0" && increment == "1" && cycle == "0" {
		return nil
	}
	return wrongTable("the sequence %s has a cache of %s, an increment of %s and CYCLE %s, and fencing tokens might go back: "+
		"ALTER SEQUENCE %[1]s INCREMENT BY 1 NOCACHE NOCYCLE", name, cache, increment, cycle)
}

// text returns a value that a driver returned as bytes or as a number.
func text(value any) string {
	if bytes, ok := value.([]byte); ok {
		return string(bytes)
	}
	return fmt.Sprint(value)
}

// checkTable returns the layout of the table, or an error if locks would not work in it, or not over the connection
// that described it.
func (i inspector) checkTable(d description) (dialect.Layout, error) {
	if d.table != "" {
		return 0, wrongTable("%s: %s", i.names.Lock, d.table)
	}
	found := make(map[string]bool)
	for _, c := range d.columns {
		name := strings.ToUpper(c.Name())
		found[name] = true
		if name != "CREATED_DATE" && name != "EXPIRED_AFTER" {
			continue
		}
		if i.dialect.Name == dialect.MySQL().Name && c.DatabaseTypeName() == "TIMESTAMP" {
			return 0, wrongTable("column %s of %s is a TIMESTAMP, which sessions of different time zones read differently, so a lease has no one end: "+
				"change it to DATETIME(6), while no program uses the table", name, i.names.Lock)
		}
		// Spring 4.3 left whole seconds on MySQL: a lease rounded down to one ends before its holder knows.
		if _, digits, known := c.DecimalSize(); known && digits < 3 {
			return 0, wrongTable("column %s of %s keeps %d digits of a second, a lease needs 6: change it to DATETIME(6)", name, i.names.Lock, digits)
		}
	}
	for _, name := range []string{"LOCK_KEY", "REGION", "CLIENT_ID", "CREATED_DATE"} {
		if !found[name] {
			return 0, wrongTable("%s has no column %s: it is not a lock table of Spring Integration or of `sqllock migrate up`", i.names.Lock, name)
		}
	}
	if err := i.checkText(d); err != nil {
		return 0, err
	}
	if found["EXPIRED_AFTER"] {
		return dialect.Spring7, nil
	}
	return dialect.Spring6, nil
}

// checkText returns an error if a key, or the region, could be written otherwise than it is read by others. That does
// not concern ASCII, which is the same everywhere.
func (i inspector) checkText(d description) error {
	switch {
	case i.ascii:
		return nil
	case d.session != "":
		return &Error{opening.op, WrongSession, fmt.Errorf("the session translates text, so a key would be another one for other sessions: %s", d.session)}
	case d.charset != "":
		return wrongTable("LOCK_KEY of %s has the character set %s, which lacks characters that a key may have: "+
			"ALTER TABLE %[1]s CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, while no program uses it", i.names.Lock, d.charset)
	default:
		return nil
	}
}

func wrongTable(format string, args ...any) error {
	return &Error{opening.op, WrongTable, fmt.Errorf(format, args...)}
}
