package session

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"io/fs"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock/dialect"
)

// An Address is where a PostgreSQL is, as a driver reads it from a DSN.
type Address struct {
	Host           string
	Port           uint16
	User, Database string
	// SSLMode is what the driver takes for sslmode, unless that is what pgx takes.
	SSLMode string

	Choice
}

var (
	postgresScheme = regexp.MustCompile(`(?i)^postgres(?:ql)?://`)
	// KeywordForm is the beginning of libpq's "host=… user=…".
	KeywordForm = regexp.MustCompile(`^\s*[a-z_]+\s*=`)
)

var (
	errPostgresURL = errors.New("the DSN is not a URL like postgres://user:password@host:5432/database; " +
		"in a password, special characters are written %XX")
	// ErrPostgresKeywords is for a DSN in place of the driver's error, which may contain a part of the password.
	ErrPostgresKeywords = errors.New("the DSN is not like host=… user=… password='…' dbname=…; " +
		"a password with spaces or quotes must be quoted")
	errPostgresForm = errors.New("the DSN is neither postgres://user:password@host:5432/database nor host=… user=… password='…' dbname=…")
)

// ParsePostgres returns the target of a DSN that a driver reads by address and connects to by connector. Its errors
// never repeat the DSN or a parser's error about it, unless that cannot contain a part of a password.
func ParsePostgres(
	dsn, driverName string, address func(string) (Address, error),
	connector func(string, Settings) (driver.Connector, error),
) (Target, error) {
	a, err := Address{}, errPostgresForm
	if scheme := postgresScheme.FindString(dsn); scheme != "" {
		dsn = "postgres://" + dsn[len(scheme):]
		a, err = postgresURL(dsn, address)
	} else if KeywordForm.MatchString(dsn) {
		if a, err = address(dsn); err != nil && !isFile(err) {
			err = ErrPostgresKeywords
		}
	}
	if err != nil {
		return Target{}, cmp.Or(OtherDatabase(dsn, "a PostgreSQL"), err)
	}
	return Target{
		Dialect: dialect.Postgres(), Redacted: a.redacted(), Choice: a.Choice, Driver: driverName, Source: a.complete(dsn), HasIsolation: true, IsLost: isLost, Connector: connector,
		SetsTimeout: strings.Contains(dsn, TimeoutSetting), Address: a.single(),
	}, nil
}

// PostgresTarget returns the target of a configuration that a driver has in place of a DSN.
func PostgresTarget(a Address, driverName string, connector func(Settings) (driver.Connector, error)) Target {
	return Target{
		Dialect: dialect.Postgres(), Redacted: a.redacted(), Choice: a.Choice, Driver: driverName, HasIsolation: true, IsLost: isLost,
		Connector: func(_ string, s Settings) (driver.Connector, error) { return connector(s) },
	}
}

// single returns host and port of the only host, or "" if there are several, or it is the directory of a socket.
func (a Address) single() string {
	if a.Hosts > 1 || a.Host == "" || strings.HasPrefix(a.Host, "/") {
		return ""
	}
	return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port)))
}

// complete returns the DSN with what is to be the same for the pools and for package notify, which reads it by pgx:
// sslmode, and of several hosts the primary. Another one refuses to write, and to LISTEN. (It is not read-write,
// which would pass over a primary whose sessions are read-only by default, and not say why.)
func (a Address) complete(dsn string) string {
	if a.SSLMode != "" {
		dsn = withParameter(dsn, "sslmode", a.SSLMode)
	}
	if a.Hosts > 1 && a.Any {
		dsn = withParameter(dsn, "target_session_attrs", "primary")
	}
	return dsn
}

// withParameter adds a parameter to a DSN that does not have it. It comes first among keywords: after a last one that
// is empty, as password= is, it would be read as its value.
func withParameter(dsn, name, value string) string {
	switch {
	case strings.Contains(dsn, name):
		return dsn
	case !postgresScheme.MatchString(dsn):
		return name + "=" + value + " " + dsn
	case strings.Contains(dsn, "?"):
		return dsn + "&" + name + "=" + value
	default:
		return dsn + "?" + name + "=" + value
	}
}

func postgresURL(dsn string, address func(string) (Address, error)) (Address, error) {
	if HasStray(strings.TrimPrefix(dsn, "postgres://")) {
		return Address{}, ErrStray
	}
	a, err := address(dsn)
	if err == nil || isFile(err) {
		return a, err
	}
	base, parameters, found := strings.Cut(dsn, "?")
	if _, baseErr := address(base); !found || baseErr != nil {
		return Address{}, errPostgresURL
	}
	if strings.Contains(strings.ToLower(parameters), "password") {
		return Address{}, ErrParameters
	}
	parse := func(one string) error { _, err := address(base + "?" + one); return err }
	return Address{}, WrongParameters(parameters, parse, err)
}

// isFile reports whether err says that a file cannot be read: a certificate or a key, which the DSN or the
// environment names. It has the file's name and nothing else of the DSN.
func isFile(err error) bool { return errors.As(err, new(*fs.PathError)) }

func (a Address) redacted() string {
	if strings.HasPrefix(a.Host, "/") { // the directory of a socket
		return RedactedURL("postgres", a.User, "", a.Database) + "?host=" + a.Host
	}
	// A URL's IPv6 address keeps its brackets.
	host := net.JoinHostPort(strings.Trim(a.Host, "[]"), strconv.Itoa(int(a.Port)))
	return RedactedURL("postgres", a.User, host, a.Database)
}
