// Package listing is the lock table as people look at it, on a page or in a terminal: rows with
// the names of their keys, in an order, and those of them that fit a search.
package listing

import (
	"regexp"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/printable"
)

// A Lock is a row as it is shown.
type Lock struct {
	sqllock.Row
	// Key is the user's key, or "" if it is not known.
	Key string
	// Full is how long the lease lasts when it has just been renewed, as far as the row shows:
	// see [Bars].
	Full time.Duration
}

// Name returns the key, or the LOCK_KEY of a lock whose key is not known. It is safe to show.
func (l Lock) Name() string {
	if l.Key != "" {
		return printable.Text(l.Key)
	}
	return printable.Text(l.LockKey)
}

// State returns "held" or "expired".
func (l Lock) State() string {
	if l.Expired() {
		return "expired"
	}
	return "held"
}

// acquisition is how a CLIENT_ID of sqllock ends: with the number of the acquisition.
var acquisition = regexp.MustCompile(`^(.+)-([0-9a-f]{11})$`)

// Holder divides the CLIENT_ID of a row into the client and the number of its acquisition, which
// is "" in the rows of Spring.
func (l Lock) Holder() (client, number string) {
	if parts := acquisition.FindStringSubmatch(l.Row.Holder); parts != nil {
		return parts[1], parts[2]
	}
	return l.Row.Holder, ""
}

// Matches reports whether each word of a search is in the key, LOCK_KEY, region, holder or state
// of the lock, in upper or lower case.
func (l Lock) Matches(search string) bool {
	all := strings.ToLower(l.Key + "\n" + l.LockKey + "\n" + l.Region + "\n" + l.Row.Holder + "\n" + l.State())
	for word := range strings.FieldsSeq(strings.ToLower(search)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}

// hashed is what Spring's mapping makes of a key that is no UUID.
var hashed = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-3[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// Named returns rows with their keys. names has the known keys, by LOCK_KEY. A LOCK_KEY that is
// none of Spring's hashes is itself the key.
func Named(rows []sqllock.Row, names map[string]string) []Lock {
	locks := make([]Lock, len(rows))
	for i, row := range rows {
		key := names[row.LockKey]
		if key == "" && !hashed.MatchString(row.LockKey) {
			key = row.LockKey
		}
		locks[i] = Lock{Row: row, Key: key}
	}
	return locks
}
