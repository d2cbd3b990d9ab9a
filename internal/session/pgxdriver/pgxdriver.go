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
	"github.com/jackc/pgx/v5/pgxpool"
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

// errInline is the error for what lib/pq alone knows: certificates and keys in place of the names of their files.
var errInline = errors.New("pgx does not know sslinline: sslcert, sslkey and sslrootcert are the names of files")

// withoutDSN returns the part of an error about dsn that cannot contain a password or a key.
func withoutDSN(dsn string, err error) error {
	file := new(fs.PathError)
	switch {
	case !errors.As(err, &file):
		return errParse
	case strings.Contains(dsn, "sslinline"):
		return errInline
	default:
		return file
	}
}

func address(dsn string) (session.Address, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return session.Address{}, withoutDSN(dsn, err)
	}
	return addressOf(config)
}

func addressOf(config *pgx.ConnConfig) (session.Address, error) {
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
		return nil, withoutDSN(dsn, err)
	}
	return connectorOf(config, s), nil
}

// connectorOf returns a connector of config, which it changes.
func connectorOf(config *pgx.ConnConfig, s session.Settings, opts ...stdlib.OptionOpenDB) driver.Connector {
	s.Complete(config.RuntimeParams)
	notice := config.OnNotice
	config.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		passNotice(c, n)
		if notice != nil {
			notice(c, n)
		}
	}
	// pgx sends text as UTF-8, whatever the database, the role or the DSN says. lib/pq sets it itself.
	config.RuntimeParams["client_encoding"] = "UTF8"
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = session.TimeoutOf(hosts(config))
	}
	if s.Pooled && config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		// Another session does not know the statements that were prepared in this one.
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	return stdlib.GetConnector(*config, append(opts, stdlib.OptionShouldPing(shouldPing))...)
}

var (
	errNoConfig = errors.New("the configuration is not one of pgxpool.ParseConfig or pgx.ParseConfig")
	errHooks    = errors.New("PrepareConn, BeforeAcquire and AfterRelease of the pgxpool.Config are called by a pgxpool.Pool alone: " +
		"prepare a session in AfterConnect, and give a copy without them")
)

// Configured returns the database of a pgxpool.Config, of which its connections have ConnConfig, BeforeConnect and
// AfterConnect.
func Configured(config *pgxpool.Config) (session.Target, error) {
	switch {
	case config == nil || config.ConnConfig == nil || config.ConnConfig.RuntimeParams == nil || config.ConnConfig.DialFunc == nil:
		return session.Target{}, errNoConfig // pgx would panic
	case config.PrepareConn != nil || config.BeforeAcquire != nil || config.AfterRelease != nil: //nolint:staticcheck // users may set it
		return session.Target{}, errHooks
	}
	own := config.ConnConfig.Copy() // what the caller does with theirs later changes nothing
	a, err := addressOf(own)
	if err != nil {
		return session.Target{}, err
	}
	if a.Hosts > 1 && a.Any { // see Address.complete
		own.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	var opts []stdlib.OptionOpenDB
	if before := config.BeforeConnect; before != nil {
		opts = append(opts, stdlib.OptionBeforeConnect(func(ctx context.Context, c *pgx.ConnConfig) error {
			c2 := c.Copy() // stdlib passes a shallow one
			err := before(ctx, c2)
			*c = *c2
			return err
		}))
	}
	if config.AfterConnect != nil {
		opts = append(opts, stdlib.OptionAfterConnect(config.AfterConnect))
	}
	target := session.PostgresTarget(a, "pgx", func(s session.Settings) (driver.Connector, error) { return connectorOf(own.Copy(), s, opts...), nil })
	target.OnNotice = onNotice
	target.Plain = stdlib.GetConnector(*own, opts...)
	_, target.SetsTimeout = own.RuntimeParams[session.TimeoutSetting]
	return target, nil
}

// ToListen returns the configuration of a connection for package notify, which goes where those of the pools go.
func ToListen(config *pgxpool.Config) *pgconn.Config {
	own := config.ConnConfig.Config.Copy()
	if a, err := addressOf(config.ConnConfig); err == nil && a.Hosts > 1 && a.Any {
		own.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	return own
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
// has come: a server that has closed the connection has said so. The time limit is not a context's,
// after whose end a BuildContextWatcherHandler of the caller's may let the connection wait on.
func shouldPing(_ context.Context, p stdlib.ShouldPingParams) bool {
	if p.IdleDuration <= time.Second {
		return false
	}
	conn := p.Conn.PgConn()
	if conn.Conn().SetReadDeadline(time.Now().Add(peekTimeout)) != nil {
		return true // it is closed, or of a dialer whose connections have no deadlines
	}
	defer func() { _ = conn.Conn().SetReadDeadline(time.Time{}) }()
	_, err := conn.ReceiveMessage(context.Background()) //nolint:contextcheck // with one that ends, the caller's handler waits on
	return err != nil && !pgconn.Timeout(err)
}
