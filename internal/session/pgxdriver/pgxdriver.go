// Package pgxdriver makes sessions of PostgreSQL over pgx.
package pgxdriver

import (
	"context"
	"database/sql/driver"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock/internal/session"
)

// Parse returns the database that a DSN of PostgreSQL names: postgres://… or host=… user=….
// Its errors never contain a part of a password.
func Parse(dsn string) (session.Target, error) {
	target, err := session.ParsePostgres(dsn, "pgx", address, connector)
	target.OnNotice = onNotice
	return target, err
}

// noteKey is where a connection has the function that gets its notices.
const noteKey = "sqllock"

func onNotice(c driver.Conn, note func(routine string)) {
	c.(*stdlib.Conn).Conn().PgConn().CustomData()[noteKey] = note //nolint:forcetypeassert // connector makes no other
}

func passNotice(c *pgconn.PgConn, n *pgconn.Notice) {
	if note, ok := c.CustomData()[noteKey].(func(string)); ok {
		note(n.Routine)
	}
}

// errParse stands for pgx's errors about a DSN, which repeat parts of it.
var errParse = errors.New("pgx cannot parse them")

// withoutDSN returns the part of such an error that cannot contain a password.
func withoutDSN(err error) error {
	if file := new(fs.PathError); errors.As(err, &file) {
		return file
	}
	return errParse
}

func address(dsn string) (session.Address, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return session.Address{}, withoutDSN(err)
	}
	// pgx takes what follows the first @ for the host, and that may be a part of the password.
	isStray := func(f *pgconn.FallbackConfig) bool { return strings.Contains(f.Host, "@") }
	if strings.Contains(config.Host, "@") || slices.ContainsFunc(config.Fallbacks, isStray) {
		return session.Address{}, session.ErrStray
	}
	mode := config.DefaultQueryExecMode
	return session.Address{
		Host: config.Host, Port: config.Port, User: config.User, Database: config.Database,
		Choice: session.Choice{
			Hosts:  hosts(config),
			Any:    config.ValidateConnect == nil,
			Pooled: mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol || config.RuntimeParams["binary_parameters"] == "yes",
		},
	}, nil
}

func connector(dsn string, s session.Settings) (driver.Connector, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, withoutDSN(err)
	}
	s.Complete(config.RuntimeParams)
	config.OnNotice = passNotice
	// pgx sends text as UTF-8, whatever the database, the role or the DSN says. lib/pq sets it itself.
	config.RuntimeParams["client_encoding"] = "UTF8"
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = session.TimeoutOf(hosts(config))
	}
	if s.Pooled && config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		// Another session does not know the statements that were prepared in this one.
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	return stdlib.GetConnector(*config, stdlib.OptionShouldPing(shouldPing)), nil
}

// hosts returns how many hosts there are to go to. The fallbacks of pgx are also those to a
// connection without TLS, which has the rest of its host's time.
func hosts(config *pgx.ConnConfig) int {
	n, host, port := 1, config.Host, config.Port
	for _, f := range config.Fallbacks {
		if f.Host != host || f.Port != port {
			n, host, port = n+1, f.Host, f.Port
		}
	}
	return n
}

// peekTimeout is how long it is waited for what an idle connection has received.
const peekTimeout = time.Millisecond

// shouldPing reports whether a connection that was idle is broken. By default pgx sends a ping
// to find out, a round trip more for each statement after a second. Here it is only read what
// has come: a server that has closed the connection has said so.
func shouldPing(ctx context.Context, p stdlib.ShouldPingParams) bool {
	if p.IdleDuration <= time.Second {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, peekTimeout)
	defer cancel()
	_, err := p.Conn.PgConn().ReceiveMessage(ctx)
	return err != nil && !pgconn.Timeout(err)
}
