package main

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/sqllock/sqllock/dialect"
)

// A target is what a DSN leads to.
type target struct {
	driver, source string // for sql.Open
	creating       string // SQLite: the source that creates a missing file
	dialect        dialect.Dialect
	redacted       string // the DSN without passwords and parameters
	file           string // SQLite: the path, where it is known
}

var (
	schemeForm = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	// keywordForm is the beginning of libpq's "host=… user=…".
	keywordForm = regexp.MustCompile(`^\s*[a-z_]+\s*=`)
)

const dsnForms = "postgres://user:password@host:5432/database, mysql://user:password@host:3306/database, " +
	"user:password@tcp(host:3306)/database or sqlite:/path/to/file"

// parseDSN finds out which database a DSN means. Its errors are usage errors.
// They never repeat the DSN, nor what a parser said about it, unless it is known
// not to be a part of a password: one that a user forgot to encode can end up in
// any other part.
func parseDSN(dsn string) (target, error) {
	if strings.ContainsAny(dsn, "\n\r\x00") {
		return target{}, usageError("the DSN has a line break or a NUL in it")
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
		return target{}, usageError("%s:// is not a database that sqllock knows; the DSN may be %s", scheme[1], dsnForms)
	}
	if keywordForm.MatchString(dsn) {
		return parsePostgresKeywords(dsn)
	}
	if strings.Contains(dsn, "/") && strings.ContainsAny(dsn, "@(") {
		return parseMySQL(dsn)
	}
	return target{}, usageError("the DSN has none of the known forms; it may be %s", dsnForms)
}

// straysFromURL tells whether what follows the host in a URL looks like the rest
// of a password with / ? or # in it, which ends the host too early. rest is the
// URL without its scheme.
func straysFromURL(rest string) bool {
	end := strings.IndexAny(rest, "/?#")
	return end >= 0 && strings.ContainsAny(rest[end:], "@#")
}

const strayText = "the DSN has an @ or # behind its host: in a password, / is written %%2F, ? %%3F, # %%23 and @ %%40"

// shownURL is the form in which a DSN appears in messages. It is made of the
// parts that are no secret, not by cutting the secret ones out.
func shownURL(scheme, user, host, database string) string {
	if user != "" {
		host = url.User(user).String() + "@" + host
	}
	return scheme + "://" + host + "/" + url.PathEscape(database)
}
