package session

import (
	"errors"
	"net/url"
	"strings"
)

// HasStray reports whether what follows the host in a URL looks like the rest of a
// password: a password with / ? or # in it ends the host too early. rest is the URL
// without its scheme.
func HasStray(rest string) bool {
	end := strings.IndexAny(rest, "/?#")
	return end >= 0 && strings.ContainsAny(rest[end:], "@#")
}

// ErrStray is the error for a URL that [HasStray].
var ErrStray = errors.New("the DSN has an @ or # after its host: in a password, / is written %2F, ? %3F, # %23 and @ %40")

// ErrLineBreak is the error for a DSN with a line break or a NUL in it.
var ErrLineBreak = errors.New("the DSN has a line break or a NUL in it")

// ErrParameters is the error for bad parameters of a URL.
var ErrParameters = errors.New("the DSN has wrong parameters after its ?")

// ErrCharset is the error for parameters that choose a character set in which the driver cannot quote.
var ErrCharset = errors.New("a parameter of the DSN sets another character set than utf8mb4")

// RedactedURL is the form in which a DSN appears in messages. It is built from the
// parts that are not secret; no secret is cut out of anything.
func RedactedURL(scheme, user, host, database string) string {
	if user != "" {
		host = url.User(user).String() + "@" + host
	}
	return scheme + "://" + host + "/" + url.PathEscape(database)
}
