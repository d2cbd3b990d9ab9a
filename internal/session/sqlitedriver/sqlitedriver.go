// Package sqlitedriver makes sessions of SQLite over modernc.org/sqlite, which needs no C
// compiler.
package sqlitedriver

import (
	"database/sql/driver"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite" // also registers the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/session"
)

// pragmas make writers wait for each other's commits instead of failing, and
// let readers read meanwhile.
var pragmas = []string{"busy_timeout(10000)", "journal_mode(WAL)"}

var (
	errInMemory  = errors.New("other processes cannot see a database in memory, so its locks exclude nothing: give a file")
	errNoFile    = errors.New("the DSN names no file: sqlite:/path/to/file")
	errNoURIFile = errors.New("the DSN names no file: file:/path/to/file")
	errNoLocks   = errors.New("with nolock or vfs=unix-none no process sees the locks of others on the file")
	errFragment  = errors.New("the DSN has a # in it, after which SQLite reads nothing: in a path, # is written %23")
	errOtherForm = errors.New("the DSN has none of the forms sqlite:/path/to/file, file:/path/to/file?name=value and /path/to/file")
	errNotURI    = errors.New("after sqlite: comes a path; parameters need SQLite's own form, file:/path?name=value")
)

// Parse returns the file that a DSN names: sqlite:PATH, file:PATH?name=value or a path. Its
// errors never contain a parameter, which may be a key.
func Parse(dsn string) (session.Target, error) {
	if uri, ok := strings.CutPrefix(dsn, "file:"); ok {
		return parseURI(uri)
	}
	path, named := strings.CutPrefix(dsn, "sqlite:")
	if err := session.OtherDatabase(dsn, "an SQLite"); err != nil && !named {
		return session.Target{}, err // as a path it would be shown with its password
	}
	if !named && strings.Contains(dsn, "://") {
		return session.Target{}, errOtherForm // another database's, with a password in it
	}
	return parsePath(path)
}

// parsePath parses what follows sqlite: in a DSN. A leading // is dropped.
func parsePath(path string) (session.Target, error) {
	path = strings.TrimPrefix(path, "//")
	switch {
	case path == "":
		return session.Target{}, errNoFile
	case strings.HasPrefix(path, ":memory:"):
		return session.Target{}, errInMemory
	case strings.Contains(path, "?"):
		return session.Target{}, errNotURI
	case strings.Contains(path, "\x00"): // SQLite reads no further, and without a name makes a temporary database
		return session.Target{}, session.ErrLineBreak
	}
	t := target(uriOf(path), url.Values{})
	t.Redacted, t.File = "sqlite:"+path, path
	return t, nil
}

// uriOf is the URI of a path, without parameters.
func uriOf(path string) string {
	slashed := filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		slashed = "/" + slashed // file:/C:/…
	}
	if strings.HasPrefix(slashed, "//") {
		slashed = "//" + slashed // otherwise what follows would be a host
	}
	return "file:" + (&url.URL{Path: slashed}).EscapedPath()
}

// DSN returns the DSN of a file. Its path may contain any characters, such as ? and
// line breaks.
func DSN(path string) string {
	if strings.ContainsAny(path, "?\n\r") {
		return uriOf(path)
	}
	return "sqlite:" + path
}

// parseURI parses what follows file: in one of SQLite's own URIs. The URI is used
// unchanged, with the pragmas that it lacks.
func parseURI(uri string) (session.Target, error) {
	path, parameters, _ := strings.Cut(uri, "?")
	query, err := url.ParseQuery(parameters)
	if err != nil {
		return session.Target{}, session.ErrParameters
	}
	switch name := nameOf(path); {
	case strings.Contains(uri, "#"):
		return session.Target{}, errFragment
	case name == "":
		return session.Target{}, errNoURIFile
	case strings.HasPrefix(name, ":memory:") || slices.Contains(query["mode"], "memory") || slices.Contains(query["vfs"], "memdb"):
		return session.Target{}, errInMemory
	case isTrue(query["nolock"]) || slices.Contains(query["vfs"], "unix-none"):
		return session.Target{}, errNoLocks
	}
	t := target("file:"+path, query)
	t.Redacted = "file:" + path
	return t, nil
}

// nameOf returns the name that SQLite reads from the path of a URI, or "" if it names no file: then
// SQLite would make a temporary database, which each connection has for itself.
func nameOf(path string) string {
	if authority, ok := strings.CutPrefix(path, "//"); ok {
		slash := strings.IndexByte(authority, '/')
		if slash < 0 {
			return ""
		}
		path = authority[slash:]
	}
	name, err := url.PathUnescape(path)
	if err != nil {
		name = path // SQLite takes a % that is no escape as it is
	}
	name, _, _ = strings.Cut(name, "\x00")
	return name
}

// isTrue reports whether a parameter is set to what SQLite takes for true, or may take.
func isTrue(values []string) bool {
	return slices.ContainsFunc(values, func(v string) bool {
		return !slices.Contains([]string{"", "0", "false", "off", "no"}, strings.ToLower(v))
	})
}

// target returns the target of a URI and its parameters. A file that does not
// exist is created only where the caller asks for it, unless a parameter says
// otherwise: most often its name is mistyped.
func target(uri string, query url.Values) session.Target {
	t := session.Target{Driver: "sqlite", Dialect: dialect.SQLite(), Connector: connector, Watcher: watcherOf}
	// SQLite rejects a change of the journal mode of a read-only file.
	if query.Get("mode") != "ro" && query.Get("immutable") == "" {
		query["_pragma"] = append(slices.Clone(pragmas), query["_pragma"]...)
	}
	if query.Get("mode") == "" {
		t.Creating = uri + "?" + query.Encode()
		query.Set("mode", "rw")
	}
	t.Source = uri + "?" + query.Encode()
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

func connector(source string, _ session.Settings) (driver.Connector, error) {
	source, err := absolute(source)
	if err != nil {
		return nil, err
	}
	c, err := sqlite.NewConnector(source)
	if err != nil {
		return nil, err
	}
	return session.Preparing(c), nil
}

// absolute returns a URI whose file does not depend on the directory of this process.
func absolute(source string) (string, error) {
	path, parameters, _ := strings.Cut(strings.TrimPrefix(source, "file:"), "?")
	name := nameOf(path)
	if strings.HasPrefix(name, "/") { // also of Windows: file:/C:/…
		return source, nil
	}
	err := session.Absolute(&name)
	return uriOf(name) + "?" + parameters, err
}
