package main

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite" // also registers the driver "sqlite", which needs no C compiler
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sqllock/sqllock/dialect"
)

// sqlitePragmas make contenders wait for each other's commits instead of
// failing, and readers not wait at all.
var sqlitePragmas = []string{"busy_timeout(10000)", "journal_mode(WAL)"}

const inMemory = "a database in memory is nobody else's, so it keeps nobody out: give a file"

// parseSQLite parses what follows sqlite: a path, of which // is no part.
func parseSQLite(path string) (target, error) {
	path = strings.TrimPrefix(path, "//")
	switch {
	case path == "":
		return target{}, usageError("the DSN names no file: sqlite:/path/to/file")
	case strings.HasPrefix(path, ":memory:"):
		return target{}, usageError(inMemory)
	case strings.Contains(path, "?"):
		return target{}, usageError("sqlite: is followed by a path; parameters need SQLite's own form, file:/path?name=value")
	}
	t := sqliteTarget(sqliteURI(path), url.Values{})
	t.redacted, t.file = "sqlite:"+path, path
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

// sqliteDSN is a DSN of a path that was not written as one: it may contain what
// would be the beginning of parameters, or the end of a line.
func sqliteDSN(path string) string {
	if strings.ContainsAny(path, "?\n\r") {
		return sqliteURI(path)
	}
	return "sqlite:" + path
}

// parseSQLiteURI parses what follows file: in an URI of SQLite's, which is used
// as it is, with the pragmas that it lacks.
func parseSQLiteURI(uri string) (target, error) {
	path, parameters, _ := strings.Cut(uri, "?")
	query, err := url.ParseQuery(parameters)
	switch {
	case err != nil:
		return target{}, usageError("the DSN has wrong parameters behind its ?")
	case path == "":
		return target{}, usageError("the DSN names no file: file:/path/to/file")
	case strings.HasPrefix(path, ":memory:") || query.Get("mode") == "memory":
		return target{}, usageError(inMemory)
	}
	t := sqliteTarget("file:"+path, query)
	t.redacted = "file:" + path
	return t, nil
}

// sqliteTarget makes a target of an URI and its parameters. A file that is not
// there is only created where that is wanted, unless a parameter says otherwise:
// most often it is a slip of the pen.
func sqliteTarget(uri string, query url.Values) target {
	t := target{driver: "sqlite", dialect: dialect.SQLite()}
	// Of a file that is only read, a change of the journal mode would be refused.
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

// missing tells whether the target is a file that is not there.
func (t target) missing() bool {
	_, err := os.Stat(t.file)
	return t.file != "" && errors.Is(err, fs.ErrNotExist)
}

// unwritable reports whether SQLite could not write to a file or to its directory.
func unwritable(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	const primary = 0xff // the low byte; the rest says more exactly why
	code := e.Code() & primary
	return code == sqlite3.SQLITE_READONLY || code == sqlite3.SQLITE_CANTOPEN
}

const writableHint = "a file that this user may write to, in a directory that is there and that this user may write to"
