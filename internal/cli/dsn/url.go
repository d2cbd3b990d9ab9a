package dsn

import (
	"net/url"
	"strings"
)

// hasStray reports whether what follows the host in a URL looks like the rest of a
// password: a password with / ? or # in it ends the host too early. rest is the URL
// without its scheme.
func hasStray(rest string) bool {
	end := strings.IndexAny(rest, "/?#")
	return end >= 0 && strings.ContainsAny(rest[end:], "@#")
}

const strayText = "the DSN has an @ or # after its host: in a password, / is written %%2F, ? %%3F, # %%23 and @ %%40"

// redactedURL is the form in which a DSN appears in messages. It is built from the
// parts that are not secret; no secret is cut out of anything.
func redactedURL(scheme, user, host, database string) string {
	if user != "" {
		host = url.User(user).String() + "@" + host
	}
	return scheme + "://" + host + "/" + url.PathEscape(database)
}
