// Package pqdriver makes sessions of PostgreSQL over lib/pq.
package pqdriver

import (
	"cmp"
	"database/sql/driver"
	"errors"

	"github.com/lib/pq" // also registers the driver "postgres"

	"github.com/sqllock/sqllock/internal/session"
)

// Parse returns the database that a DSN of PostgreSQL names: postgres://… or host=… user=….
// Its errors never contain a part of a password.
func Parse(dsn string) (session.Target, error) {
	target, err := session.ParsePostgres(dsn, "postgres", address, connector)
	target.OnNotice, target.Prepares = onNotice, true
	return target, err
}

// errForeign is the error for parameters of lib/pq that say where the server is, or with which key to go there.
var errForeign = errors.New("with Wake the DSN must do without hostaddr (PGHOSTADDR) and sslinline: the connection that listens is one of pgx, " +
	"which knows host, and files for sslcert, sslkey and sslrootcert")

// ParseToListen is [Parse] for a DSN from which package notify is to connect, too.
func ParseToListen(dsn string) (session.Target, error) {
	target, err := Parse(dsn)
	if err != nil {
		return target, err
	}
	config, err := pq.NewConfig(target.Source) // as Parse has read it
	if err != nil {
		return target, session.ErrPostgresKeywords
	}
	if config.SSLInline || config.Hostaddr.IsValid() {
		return target, errForeign
	}
	return target, nil
}

func onNotice(c driver.Conn, note func(routine string)) {
	pq.SetNoticeHandler(c, func(e *pq.Error) { note(e.Routine) })
}

func address(dsn string) (session.Address, error) {
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return session.Address{}, err
	}
	attrs := config.TargetSessionAttrs
	return session.Address{
		Host: config.Host, Port: config.Port, User: config.User, Database: config.Database, SSLMode: string(cmp.Or(config.SSLMode, pq.SSLModeRequire)),
		Choice: session.Choice{
			Hosts:  1 + len(config.Multi),
			Any:    attrs == "" || attrs == pq.TargetSessionAttrsAny,
			Pooled: config.BinaryParameters,
		},
	}, nil
}

// resolve makes the paths of files absolute, which the driver reads for each connection.
func resolve(config *pq.Config) error {
	paths := []*string{&config.Passfile}
	if !config.SSLInline { // else the values are what a file would contain
		paths = append(paths, &config.SSLCert, &config.SSLKey)
		if config.SSLRootCert != "system" {
			paths = append(paths, &config.SSLRootCert)
		}
	}
	return session.Absolute(paths...)
}

func connector(dsn string, s session.Settings) (driver.Connector, error) {
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return nil, err
	}
	if err := resolve(&config); err != nil {
		return nil, err
	}
	// One round trip for a statement with arguments, also for one that is not prepared; two
	// could reach different sessions of a pooler.
	config.BinaryParameters = true
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = session.TimeoutOf(1 + len(config.Multi))
	}
	if config.Runtime == nil {
		config.Runtime = make(map[string]string)
	}
	if config.ApplicationName != "" {
		config.Runtime["application_name"] = config.ApplicationName
	}
	s.Complete(config.Runtime)
	config.ApplicationName = config.Runtime["application_name"]
	delete(config.Runtime, "application_name")
	c, err := pq.NewConnectorConfig(config)
	if err == nil && s.Patience > 0 {
		c.Dialer(dialer{patience: s.Patience})
	}
	return c, err
}
