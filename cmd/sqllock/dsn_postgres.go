package main

import (
	"net"
	"strconv"
	"strings"

	"github.com/lib/pq" // also registers the driver "postgres"

	"github.com/sqllock/sqllock/dialect"
)

// parsePostgresURL parses what follows postgres://.
func parsePostgresURL(rest string) (target, error) {
	if straysFromURL(rest) {
		return target{}, usageError(strayText)
	}
	dsn := "postgres://" + rest
	config, err := pq.NewConfig(dsn)
	if err == nil {
		return postgresTarget(dsn, config), nil
	}
	base, parameters, found := strings.Cut(dsn, "?")
	if _, baseErr := pq.NewConfig(base); !found || baseErr != nil {
		return target{}, usageError("the DSN is not a URL like postgres://user:password@host:5432/database; " +
			"in a password, special characters are written %%XX")
	}
	if strings.Contains(strings.ToLower(parameters), "password") {
		return target{}, usageError("the DSN has wrong parameters behind its ?")
	}
	return target{}, usageError("the DSN has wrong parameters behind its ?: %w", err)
}

// parsePostgresKeywords parses libpq's other form: host=… user=… dbname=….
func parsePostgresKeywords(dsn string) (target, error) {
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return target{}, usageError("the DSN is not like host=… user=… password='…' dbname=…; " +
			"a password with blanks or quotes is quoted")
	}
	return postgresTarget(dsn, config), nil
}

func postgresTarget(dsn string, config pq.Config) target {
	t := target{driver: "postgres", source: dsn, dialect: dialect.Postgres()}
	if strings.HasPrefix(config.Host, "/") { // the directory of a socket
		t.redacted = shownURL("postgres", config.User, "", config.Database) + "?host=" + config.Host
		return t
	}
	// A URL's IPv6 address keeps its brackets.
	host := net.JoinHostPort(strings.Trim(config.Host, "[]"), strconv.Itoa(int(config.Port)))
	t.redacted = shownURL("postgres", config.User, host, config.Database)
	return t
}
