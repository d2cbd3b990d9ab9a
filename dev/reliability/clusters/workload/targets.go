//go:build linux

package workload

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/sqllock/sqllock/dialect"
)

// A Target is how clients reach a cluster.
type Target struct {
	// Driver is a database/sql driver.
	Driver string
	// Engine is "TiDB" if its dialect is to be used, and not that of the driver.
	Engine string
	// DSNs are the nodes'. PostgreSQL's drivers take one DSN for all nodes.
	DSNs []string
	// Work are parameters of the DSNs for the application's own transactions: "&name=value".
	Work string
	// Choice says which of several DSNs a connection uses.
	Choice Choice
}

// working returns the target as the application's transactions use it.
func (t Target) working() Target {
	dsns := t.DSNs
	t.DSNs = nil
	for _, dsn := range dsns {
		t.DSNs = append(t.DSNs, dsn+t.Work)
	}
	return t
}

// A Choice says which node a new connection goes to.
type Choice string

const (
	// One is the only DSN.
	One Choice = ""
	// Own gives each process one node for all of its connections.
	Own Choice = "own"
	// Random chooses a node for each connection, and another one if it does not answer.
	Random Choice = "random"
	// Primary looks for the node that takes writes.
	Primary Choice = "primary"
)

// Dialect returns the dialect of the target.
func (t Target) Dialect() dialect.Dialect {
	switch {
	case t.Engine == "TiDB":
		return dialect.TiDB()
	case t.Driver == "mysql":
		return dialect.MySQL()
	case t.Driver == "sqlite":
		return dialect.SQLite()
	default:
		return dialect.Postgres()
	}
}

// Open returns a pool. process chooses the node of [Own].
func (t Target) Open(process, most int) (*sqlx.DB, error) {
	var db *sql.DB
	switch t.Choice {
	case Random, Primary:
		several, err := t.connector()
		if err != nil {
			return nil, err
		}
		db = sql.OpenDB(several)
	default:
		var err error
		if db, err = sql.Open(t.Driver, t.DSNs[process%len(t.DSNs)]); err != nil {
			return nil, err
		}
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	if len(t.DSNs) > 1 && t.Choice != Own && process%2 == 1 {
		db.SetMaxIdleConns(0) // otherwise one connection, and so one node, answers most statements in a row
	}
	return sqlx.NewDb(db, t.Driver), nil
}

// connector connects to any of the nodes.
func (t Target) connector() (*connector, error) {
	several := &connector{choice: t.Choice}
	for _, dsn := range t.DSNs {
		config, err := mysql.ParseDSN(dsn)
		if err != nil {
			return nil, err
		}
		one, err := mysql.NewConnector(config)
		if err != nil {
			return nil, err
		}
		several.nodes = append(several.nodes, one)
	}
	return several, nil
}

// A connector connects to one of several MySQL servers.
type connector struct {
	nodes  []driver.Connector
	choice Choice
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	_, conn, err := c.choose(ctx)
	return conn, err
}

// choose returns a connection, and the number of its node.
func (c *connector) choose(ctx context.Context) (int, driver.Conn, error) {
	var failed error
	for _, i := range rand.Perm(len(c.nodes)) {
		conn, err := c.nodes[i].Connect(ctx)
		if err == nil && c.choice == Primary {
			err = takesWrites(ctx, conn)
		}
		if err == nil {
			return i, conn, nil
		}
		if conn != nil {
			_ = conn.Close() // it was not used
		}
		failed = errors.Join(failed, err)
	}
	return 0, nil, failed
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return c.nodes[0].Driver() }

var errReadOnly = errors.New("the node takes no writes")

// takesWrites returns nil if the server is the primary of its group.
func takesWrites(ctx context.Context, conn driver.Conn) error {
	const question = `SELECT @@global.super_read_only = 0 AND EXISTS (SELECT 1 FROM performance_schema.replication_group_members
WHERE MEMBER_ID = @@server_uuid AND MEMBER_STATE = 'ONLINE' AND MEMBER_ROLE = 'PRIMARY')`
	asker, ok := conn.(driver.QueryerContext)
	if !ok {
		return fmt.Errorf("%T runs no queries", conn)
	}
	rows, err := asker.QueryContext(ctx, question, nil)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // the row was read
	values := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(values); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	answer := values[0]
	if text, ok := answer.([]byte); ok {
		answer = string(text)
	}
	if fmt.Sprint(answer) != "1" {
		return errReadOnly
	}
	return nil
}
