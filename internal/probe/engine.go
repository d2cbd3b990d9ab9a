package probe

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed" // for the table
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/transaction"
)

// An Engine is a kind of server, as it reports itself.
type Engine struct {
	Name string
	// Dialect is the name of the dialect for it, or "" if that is not known.
	Dialect string
	// Oldest is the oldest version that sqllock supports, or "" if it supports none.
	Oldest string
	// Refusal says why sqllock does not support the engine with that dialect, or is "".
	Refusal string

	sign *regexp.Regexp
}

// RefusalOf returns why sqllock does not support the engine with a dialect, or "".
func (e Engine) RefusalOf(d sqltext.Dialect) string {
	if d.Engine == e.Name {
		return ""
	}
	return e.Refusal
}

//go:embed engines.tsv
var engineTable string

// engines returns the rows of engines.tsv, which end with a regular expression for what the server reports. Many engines
// speak the protocol of PostgreSQL or of MySQL, so these stand after them. The last row is for all that are not known.
var engines = sync.OnceValue(func() (all []Engine) {
	for line := range strings.Lines(engineTable) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		all = append(all, Engine{Name: cells[0], Dialect: cells[1], Oldest: cells[2], Refusal: cells[3], sign: regexp.MustCompile(cells[4])})
	}
	return all
})

// EngineOf returns the engine of a server by the answer to sqltext.Statements.Version. It is the first one whose sign
// matches.
func EngineOf(server string) Engine {
	all := engines()
	return all[slices.IndexFunc(all, func(e Engine) bool { return e.sign.MatchString(server) })]
}

// checkServer returns an error if the server needs another dialect, or if sqllock does not support it. A
// server that has not answered is "".
func (i inspector) checkServer(ctx context.Context, server string) error {
	if server == "" {
		return nil
	}
	switch engine := EngineOf(server); {
	case engine.Dialect != "" && engine.Dialect != i.dialect.Name, i.dialect.Engine != "" && i.dialect.Engine != engine.Name:
		return &dbcall.Error{Kind: dbcall.WrongDialect, Err: fmt.Errorf(
			"the dialect is %s, but the database says that it is %q, which needs the dialect %s", cmp.Or(i.dialect.Engine, i.dialect.Name), server, engine.Dialect)}

	case engine.RefusalOf(i.dialect) != "" && !i.unverified:
		return &dbcall.Error{Kind: dbcall.Unsupported, Err: fmt.Errorf(
			"the database says that it is %q, and sqllock does not support %s: %s (RepositoryOptions.Unverified permits it)", server, engine.Name, engine.Refusal)}

	case isVitess(server) && !i.unverified:
		return i.checkKeyspace(ctx)
	default:
		return nil
	}
}

// Vitess is the name of the only engine that is asked for more than its version.
const Vitess = "Vitess"

func isVitess(server string) bool { return EngineOf(server).Name == Vitess }

// checkKeyspace returns an error if the keyspace of Vitess that has the table, or would have it, is sharded: then rows of a
// joint lock, of a semaphore, or of the application are elsewhere, and a COMMIT about several shards is several.
func (i inspector) checkKeyspace(ctx context.Context) error {
	keyspace, err := Keyspace(ctx, i.db, i.names)
	if err != nil {
		return err
	}
	rows, err := i.db.QueryContext(ctx, "SHOW VSCHEMA KEYSPACES")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	sharded := ""                       // is not known
	for rows.Next() {
		row, err := scanByName(rows)
		if err != nil {
			return err
		}
		if text(row["Keyspace"]) == keyspace {
			sharded = text(row["Sharded"])
		}
	}
	switch {
	case rows.Err() != nil:
		return rows.Err()
	case sharded == "":
		return &dbcall.Error{Kind: dbcall.Unsupported, Err: fmt.Errorf("vtgate does not know the keyspace %q: name an unsharded one in the DSN", keyspace)}
	case sharded != "false":
		return &dbcall.Error{Kind: dbcall.Unsupported, Err: fmt.Errorf("the keyspace %s of Vitess is sharded, and a lock needs one shard: "+
			"give the DSN of an unsharded keyspace, as docs/clusters.md says (Vitess) (RepositoryOptions.Unverified permits it)", keyspace)}

	default:
		return nil
	}
}

// An asker is a pool, or a connection.
type asker interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Keyspace returns the keyspace of Vitess that has the table: that of the prefix, or the one that the session uses. The
// latter may be followed by a type of tablets, as in app@primary.
func Keyspace(ctx context.Context, db asker, names sqltext.Names) (string, error) {
	if names.Schema != "" {
		return names.Schema, nil
	}
	var target sql.NullString
	err := db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&target)
	keyspace, _, _ := strings.Cut(target.String, "@")
	return keyspace, err
}

// CheckServer asks a server what it is, for a caller who is about to create tables there. It returns an error if
// the server needs another dialect, or if sqllock does not support it and unverified is false.
func CheckServer(ctx context.Context, db *sql.DB, d sqltext.Dialect, prefix string, unverified bool) error {
	names, _ := sqltext.NamesFor(prefix) // what creates the tables says what is wrong with it
	_, err := dbcall.CallInTime(ctx, dbcall.ServerOf(ctx, d, names), Opening, 0, func(ctx context.Context) (struct{}, error) {
		return transaction.On(ctx, transaction.Pool{DB: db, Dialect: &d}, func(conn *sql.Conn) (none struct{}, err error) {
			i := inspector{db: conn, dialect: d, names: names, unverified: unverified}
			return none, i.checkServer(ctx, i.askServer(ctx))
		})
	}, nil)
	return err
}
