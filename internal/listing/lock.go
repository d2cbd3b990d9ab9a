// Package listing is the lock table as people look at it, on a page or in a terminal: rows with
// the names of their keys, in an order, and those of them that fit a search.
package listing

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clientid"
	"github.com/sqllock/sqllock/internal/printable"
	"github.com/sqllock/sqllock/internal/seatkey"
)

// A Lock is a row as it is shown.
type Lock struct {
	sqllock.Row
	// Key is the user's key, or "" if it is not known.
	Key string
	// Seat says which row of a semaphore or of a read-write lock it is. It is zero for another lock.
	Seat Seat
	// TTL is the time-to-live to which the holder renews the lease, or 0 if that is not known. [ReadTTLs] sets it.
	TTL time.Duration
	// Full is how long the lease lasts when it has just been renewed, as far as the row shows:
	// see [Bars].
	Full time.Duration
}

// Name returns the key, "permit 0 of render" for a seat, or the LOCK_KEY of a lock whose key is not known. It is safe to show.
func (l Lock) Name() string {
	if l.Seat.Key != "" {
		return printable.Text(seatkey.Name(l.Seat.Kind, l.Seat.Number, l.Seat.Key))
	}
	if l.Key != "" {
		return printable.Text(l.Key)
	}
	return printable.Text(l.LockKey)
}

// HeldBy returns the process that holds the lock, or the CLIENT_ID if the process is not known. It is safe to show.
func (l Lock) HeldBy() string {
	return printable.Text(cmp.Or(l.Process.String(), l.Row.Holder))
}

// States are what [Lock.State] returns.
var States = []string{"held", "kept", "expired", "finished"}

// State returns "held"; "kept" if the holder has finished and the lock stays taken for the rest of its minimum
// hold; "expired" if the holder has not renewed or released it; or "finished" if the row was kept and is
// free: its minimum hold is over, or it is that of a busy key.
func (l Lock) State() string {
	switch {
	case l.Released():
		return "finished"
	case l.Kept():
		return "kept"
	case l.Expired():
		return "expired"
	default:
		return "held"
	}
}

// After returns the lock as it is some time after it was read. A lock that was held does not expire by that: only the
// table says whether it was renewed since.
func (l Lock) After(passed time.Duration) Lock {
	held := !l.Expired()
	l.Age += passed
	if l.Left -= passed; held {
		l.Left = max(l.Left, time.Nanosecond)
	}
	return l
}

// HeldFor returns how long the lock has been held, or was held until its lease ended. The row of a busy key does not tell when
// it was released, since it is given an end long before that: for such a row it is the time since the lock was acquired.
func (l Lock) HeldFor() time.Duration {
	if held := l.Age + l.Left; l.Expired() && (held >= 0 || !l.Released()) {
		return max(held, 0)
	}
	return l.Age
}

// Holder divides the CLIENT_ID of a row into the client and the number of its acquisition, which
// is "" in the rows of Spring.
func (l Lock) Holder() (client, number string) {
	if client, number, ok := clientid.Split(l.Row.Holder); ok {
		return client, number
	}
	return l.Row.Holder, ""
}

// Matches reports whether each word of a search is in the key, LOCK_KEY, region, process, CLIENT_ID or state
// of the lock, in upper or lower case.
func (l Lock) Matches(search string) bool {
	all := strings.ToLower(strings.Join([]string{l.Name(), l.Key, l.LockKey, l.Region, l.Process.String(), l.Row.Holder, l.State()}, "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(search)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}

// hashed is what Spring's mapping makes of a key that is no UUID.
var hashed = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-3[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// Named returns rows with their keys, as the table of names has them. names has other known keys, by LOCK_KEY. A LOCK_KEY
// that is none of Spring's hashes is itself the key.
func Named(rows []sqllock.Row, names map[string]string) []Lock {
	locks := make([]Lock, len(rows))
	totals := make(map[string]int) // by the LOCK_KEY of the semaphore: to count for each row takes the square of the permits
	for i, row := range rows {
		key := cmp.Or(row.Key, names[row.LockKey])
		if key == "" && !hashed.MatchString(row.LockKey) {
			key = row.LockKey
		}
		seat := seatOf(row.LockKey, key, names)
		if seat.Kind == seatkey.Permit {
			if _, counted := totals[seat.Of]; !counted {
				totals[seat.Of] = permits(seat.Of, names)
			}
			seat.Total = totals[seat.Of]
		}
		locks[i] = Lock{Row: row, Key: key, Seat: seat}
	}
	return locks
}
