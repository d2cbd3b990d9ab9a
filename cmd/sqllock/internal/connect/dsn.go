package connect

import (
	"regexp"
	"strings"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/mysqldriver"
	"github.com/sqllock/sqllock/internal/session/pgxdriver"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
)

var schemeForm = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)

const knownForms = "postgres://user:password@host:5432/database, mysql://user:password@host:3306/database, " +
	"user:password@tcp(host:3306)/database or sqlite:/path/to/file"

// ParseDSN returns the database that a DSN names. Its errors are usage errors. They never
// repeat the DSN or a parser's error about it, unless that cannot contain a part of a
// password: a password that is not encoded can end up in any other part of a DSN.
func ParseDSN(dsn string) (session.Target, error) {
	parse, err := parserOf(dsn)
	if err != nil {
		return session.Target{}, err
	}
	target, err := parse(dsn)
	if err != nil {
		return session.Target{}, exit.Usagef("%w", err)
	}
	return target, nil
}

// parserOf returns what parses a DSN, by its form.
func parserOf(dsn string) (func(string) (session.Target, error), error) {
	scheme := schemeForm.FindStringSubmatch(dsn)
	switch {
	case strings.ContainsAny(dsn, "\n\r\x00"):
		return nil, exit.Usagef("%w", session.ErrLineBreak)
	case strings.HasPrefix(dsn, "sqlite:"), strings.HasPrefix(dsn, "file:"):
		return sqlitedriver.Parse, nil
	case scheme != nil:
		switch strings.ToLower(scheme[1]) {
		case "postgres", "postgresql":
			return pgxdriver.Parse, nil
		case "mysql", "mariadb", "tidb":
			return mysqldriver.Parse, nil
		}
		return nil, exit.Usagef("sqllock does not support %s://; the DSN may be %s", scheme[1], knownForms)
	case session.KeywordForm.MatchString(dsn):
		return pgxdriver.Parse, nil
	case strings.Contains(dsn, "/") && strings.ContainsAny(dsn, "@("):
		return mysqldriver.Parse, nil
	default:
		return nil, exit.Usagef("the DSN has none of the known forms; it may be %s", knownForms)
	}
}
