// Package dsn parses the DSNs that the command accepts, and opens the databases that
// they name.
package dsn

import (
	"regexp"
	"strings"

	"github.com/sqllock/sqllock/internal/cli/exit"
)

var (
	schemeForm = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	// keywordForm is the beginning of libpq's "host=… user=…".
	keywordForm = regexp.MustCompile(`^\s*[a-z_]+\s*=`)
)

const knownForms = "postgres://user:password@host:5432/database, mysql://user:password@host:3306/database, " +
	"user:password@tcp(host:3306)/database or sqlite:/path/to/file"

// Parse returns the database that a DSN names. Its errors are usage errors. They never
// repeat the DSN or a parser's error about it, unless that cannot contain a part of a
// password: a password that is not encoded can end up in any other part of a DSN.
func Parse(dsn string) (Target, error) {
	if strings.ContainsAny(dsn, "\n\r\x00") {
		return Target{}, exit.Usagef("the DSN has a line break or a NUL in it")
	}
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		return parseSQLite(path)
	}
	if uri, ok := strings.CutPrefix(dsn, "file:"); ok {
		return parseSQLiteURI(uri)
	}
	if scheme := schemeForm.FindStringSubmatch(dsn); scheme != nil {
		rest := dsn[len(scheme[0]):]
		switch strings.ToLower(scheme[1]) {
		case "postgres", "postgresql":
			return parsePostgresURL(rest)
		case "mysql", "mariadb":
			return parseMySQLURL(rest)
		}
		return Target{}, exit.Usagef("sqllock does not support %s://; the DSN may be %s", scheme[1], knownForms)
	}
	if keywordForm.MatchString(dsn) {
		return parsePostgresKeywords(dsn)
	}
	if strings.Contains(dsn, "/") && strings.ContainsAny(dsn, "@(") {
		return parseMySQL(dsn)
	}
	return Target{}, exit.Usagef("the DSN has none of the known forms; it may be %s", knownForms)
}
