package session

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// HasStray reports whether what follows the host in a URL looks like the rest of a password: a password with / ? or #
// in it ends the host too early. rest is the URL without its scheme.
func HasStray(rest string) bool {
	end := strings.IndexAny(rest, "/?#")
	return end >= 0 && strings.ContainsAny(rest[end:], "@#")
}

// ErrStray is the error for a URL that [HasStray].
var ErrStray = errors.New("the DSN has an @ or # after its host: in a password, / is written %2F, ? %3F, # %23 and @ %40")

// errEmpty is the error for a DSN that is most likely a variable that is not set.
var errEmpty = errors.New("the DSN is empty: set DATABASE_URL, or whichever variable the program reads it from")

// ErrLineBreak is the error for a DSN with a line break or a NUL in it.
var ErrLineBreak = errors.New("the DSN has a line break or a NUL in it")

// ErrParameters is the error for bad parameters of a URL.
var ErrParameters = errors.New("the DSN has invalid parameters after the ?")

// WrongParameters is the error for the parameters of a DSN that parses without them. It names the one that does not
// parse alone. err, which says why, must not contain a password.
func WrongParameters(parameters string, parse func(one string) error, err error) error {
	for one := range strings.SplitSeq(parameters, "&") {
		name, _, found := strings.Cut(one, "=")
		if found && parameterName.MatchString(name) && parse(one) != nil {
			return fmt.Errorf("%w: see %s: %w", ErrParameters, name, err)
		}
	}
	return fmt.Errorf("%w: %w", ErrParameters, err)
}

var parameterName = regexp.MustCompile(`^[A-Za-z_]+$`)

// forms are what the DSNs of each database look like, and which package opens them.
var forms = []struct {
	database, open string
	form           *regexp.Regexp
}{
	{"a PostgreSQL", "pgxlock.Open or pqlock.Open", regexp.MustCompile(`(?i)^postgres(?:ql)?://|^\s*(?:[a-z_]+=\S*\s+)*(?:host|user|dbname)=\S`)},
	{"a MySQL", "mysqllock.Open", regexp.MustCompile(`(?i)^(?:mysql|mariadb)://|@(?:tcp|unix)\(`)},
	{"an SQLite", "sqlitelock.Open", regexp.MustCompile(`^(?:sqlite|file):`)},
}

// OtherDatabase returns the error for a DSN that looks like that of another database than own, as "a MySQL", or nil.
func OtherDatabase(dsn, own string) error {
	for _, f := range forms {
		if f.form.MatchString(dsn) {
			if f.database == own {
				return nil
			}
			return fmt.Errorf("this is %s DSN: use %s", f.database, f.open)
		}
	}
	return nil
}

// ErrCharset is the error for parameters that choose a character set in which the driver cannot quote.
var ErrCharset = errors.New("a parameter of the DSN sets another character set than utf8mb4")

// RedactedURL is the form in which a DSN appears in messages. It is built from the parts that are not secret; no
// secret is cut out of anything.
func RedactedURL(scheme, user, host, database string) string {
	if user != "" {
		host = url.User(user).String() + "@" + host
	}
	return scheme + "://" + host + "/" + url.PathEscape(database)
}
