package dsn

import (
	"net"
	"strconv"
	"strings"

	"github.com/lib/pq" // also registers the driver "postgres"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/cli/exit"
)

// parsePostgresURL parses what follows postgres://.
func parsePostgresURL(rest string) (Target, error) {
	if hasStray(rest) {
		return Target{}, exit.Usagef(strayText)
	}
	dsn := "postgres://" + rest
	config, err := pq.NewConfig(dsn)
	if err == nil {
		return postgresTarget(dsn, config), nil
	}
	base, parameters, found := strings.Cut(dsn, "?")
	if _, baseErr := pq.NewConfig(base); !found || baseErr != nil {
		return Target{}, exit.Usagef("the DSN is not a URL like postgres://user:password@host:5432/database; " +
			"in a password, special characters are written %%XX")
	}
	if strings.Contains(strings.ToLower(parameters), "password") {
		return Target{}, exit.Usagef("the DSN has wrong parameters after its ?")
	}
	return Target{}, exit.Usagef("the DSN has wrong parameters after its ?: %w", err)
}

// parsePostgresKeywords parses libpq's other form: host=… user=… dbname=….
func parsePostgresKeywords(dsn string) (Target, error) {
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return Target{}, exit.Usagef("the DSN is not like host=… user=… password='…' dbname=…; " +
			"a password with spaces or quotes must be quoted")
	}
	return postgresTarget(dsn, config), nil
}

func postgresTarget(dsn string, config pq.Config) Target {
	attrs := config.TargetSessionAttrs
	t := Target{
		driver: "postgres", source: dsn, Dialect: dialect.Postgres(),
		Hosts: 1 + len(config.Multi), ReadWrite: attrs == pq.TargetSessionAttrsReadWrite || attrs == pq.TargetSessionAttrsPrimary,
		BinaryParameters: config.BinaryParameters,
	}
	if strings.HasPrefix(config.Host, "/") { // the directory of a socket
		t.Redacted = redactedURL("postgres", config.User, "", config.Database) + "?host=" + config.Host
		return t
	}
	// A URL's IPv6 address keeps its brackets.
	host := net.JoinHostPort(strings.Trim(config.Host, "[]"), strconv.Itoa(int(config.Port)))
	t.Redacted = redactedURL("postgres", config.User, host, config.Database)
	return t
}
