package locktable

import (
	"cmp"
	"maps"
	"sync/atomic"

	"github.com/sqllock/sqllock/dialect"
)

// Statements for many rows are divided here: by inParts where a message has no room for all of them, and by
// dividing where one of them fails the others.

// A room is for how many rows the messages have room, as far as a server or a driver has refused one for its size
// (max_allowed_packet). MySQL closes the connection then, so that is not to be found out by each message.
type room struct {
	rows atomic.Int64 // 0 for any number
}

// of returns how many of n rows one message may have.
func (r *room) of(n int) int {
	if most := int(r.rows.Load()); most > 0 {
		return min(n, most)
	}
	return n
}

// hasRefused reports whether a message of n rows was refused for its size. The next one has half as many.
func (t *Table) hasRefused(n int, err error) bool {
	if n <= 1 || !t.errors.isOf(err, dialect.TooLarge) {
		return false
	}
	t.room.rows.Store(int64(t.room.of((n + 1) / 2))) // another caller may know better
	return true
}

// inParts has send called for n rows, which need not be changed together: for all at once, or for some after the
// other.
func (t *Table) inParts(n int, send func(from, to int) error) error {
	for from := 0; from < n; {
		to := from + t.room.of(n-from)
		err := send(from, to)
		if t.hasRefused(to-from, err) {
			continue
		}
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// merged returns the results of parts in one map, without another one if there is one part.
func merged[K comparable, V any](all, some map[K]V) map[K]V {
	if all == nil {
		return some
	}
	maps.Copy(all, some)
	return all
}

// dividing has send called for n rows. If it fails because of one of them, as isOne says, each half is tried by
// itself, down to one row, which is left out.
func dividing(n int, isOne func(error) bool, send func(from, to int) error) error {
	var try func(from, to int) error
	try = func(from, to int) error {
		err := send(from, to)
		switch {
		case err == nil || !isOne(err):
			return err
		case to-from <= 1:
			return nil
		}
		middle := (from + to) / 2
		return cmp.Or(try(from, middle), try(middle, to))
	}
	return try(0, n)
}
