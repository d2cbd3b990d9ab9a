package dsn

import (
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite" // also registers the driver "sqlite", which needs no C compiler
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/cli/exit"
)

// sqlitePragmas make writers wait for each other's commits instead of failing, and
// let readers read meanwhile.
var sqlitePragmas = []string{"busy_timeout(10000)", "journal_mode(WAL)"}

const inMemory = "other processes cannot see a database in memory, so its locks exclude nothing: give a file"

// parseSQLite parses what follows sqlite: in a DSN, a path. A leading // is dropped.
func parseSQLite(path string) (Target, error) {
	path = strings.TrimPrefix(path, "//")
	switch {
	case path == "":
		return Target{}, exit.Usagef("the DSN names no file: sqlite:/path/to/file")
	case strings.HasPrefix(path, ":memory:"):
		return Target{}, exit.Usagef(inMemory)
	case strings.Contains(path, "?"):
		return Target{}, exit.Usagef("after sqlite: comes a path; parameters need SQLite's own form, file:/path?name=value")
	}
	t := sqliteTarget(sqliteURI(path), url.Values{})
	t.Redacted, t.file = "sqlite:"+path, path
	return t, nil
}

// sqliteURI is the URI of a path, without parameters.
func sqliteURI(path string) string {
	slashed := filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		slashed = "/" + slashed // file:/C:/…
	}
	return "file:" + (&url.URL{Path: slashed}).EscapedPath()
}

// SQLite returns the DSN of a file. Its path may contain any characters, such as ? and
// line breaks.
func SQLite(path string) string {
	if strings.ContainsAny(path, "?\n\r") {
		return sqliteURI(path)
	}
	return "sqlite:" + path
}

// parseSQLiteURI parses what follows file: in one of SQLite's own URIs. The URI is used
// unchanged, with the pragmas that it lacks.
func parseSQLiteURI(uri string) (Target, error) {
	path, parameters, _ := strings.Cut(uri, "?")
	query, err := url.ParseQuery(parameters)
	switch {
	case err != nil:
		return Target{}, exit.Usagef("the DSN has wrong parameters after its ?")
	case path == "":
		return Target{}, exit.Usagef("the DSN names no file: file:/path/to/file")
	case strings.HasPrefix(path, ":memory:") || query.Get("mode") == "memory":
		return Target{}, exit.Usagef(inMemory)
	}
	t := sqliteTarget("file:"+path, query)
	t.Redacted = "file:" + path
	return t, nil
}

// sqliteTarget returns the target of a URI and its parameters. A file that does not
// exist is created only where the caller asks for it, unless a parameter says
// otherwise: most often its name is mistyped.
func sqliteTarget(uri string, query url.Values) Target {
	t := Target{driver: "sqlite", Dialect: dialect.SQLite()}
	// SQLite rejects a change of the journal mode of a read-only file.
	if query.Get("mode") != "ro" && query.Get("immutable") == "" {
		query["_pragma"] = append(slices.Clone(sqlitePragmas), query["_pragma"]...)
	}
	if query.Get("mode") == "" {
		t.creating = uri + "?" + query.Encode()
		query.Set("mode", "rw")
	}
	t.source = uri + "?" + query.Encode()
	return t
}

// IsUnwritable reports whether SQLite could not write to a file or to its directory.
func IsUnwritable(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	const primary = 0xff // the low byte; the rest says more exactly why
	code := e.Code() & primary
	return code == sqlite3.SQLITE_READONLY || code == sqlite3.SQLITE_CANTOPEN
}

// WritableHint is the hint for an unwritable file.
const WritableHint = "a file that this user may write to, in an existing directory that this user may write to"
