package listing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seatkey"
)

// A Seat is a row of a semaphore or of a read-write lock.
type Seat struct {
	// Of is the LOCK_KEY of the semaphore or the read-write lock, and Key its key, or "" if it is not known.
	Of, Key string
	// Kind is [seatkey.Permit] or [seatkey.Reader].
	Kind string
	// Number is that of the permit or the reader, or [seatkey.TurnNumber].
	Number string
	// Total is how many permits the semaphore has, if that is known, or 0. [Named] counts them.
	Total int
}

// seatOf returns which seat a row is, by its key. A user's own key in the form of a seat's is that of a lock, unless
// keys are LOCK_KEYs: then both are one row.
func seatOf(lockKey, key string, names map[string]string) Seat {
	var s Seat
	if kind, number, named, ok := seatkey.ParseName(key); ok {
		s = Seat{Kind: kind, Number: number, Key: named}
		s.Of, _ = sqllock.SpringKeys(s.Key)
		key = s.Of + " " + s.Kind + " " + s.Number
	}
	if hash, _ := sqllock.SpringKeys(key); hash != lockKey {
		s, key = Seat{}, lockKey // it is what the user has written, or a LOCK_KEY that is not hashed
	}
	of, kind, number, ok := seatkey.Parse(key)
	if same, _ := sqllock.SpringKeys(of); !ok || lockKey != key && same != of {
		return Seat{}
	}
	s = Seat{Of: of, Kind: kind, Number: number, Key: cmp.Or(s.Key, names[of])}
	if s.Key == "" && !hashed.MatchString(of) {
		s.Key = of
	}
	return s
}

// permits counts the permits of a semaphore whose keys are in names. A process that has used the semaphore names
// all of them.
func permits(of string, names map[string]string) (n int) {
	for {
		lockKey, err := sqllock.SpringKeys(seatkey.Seat(of, seatkey.Permit, n))
		if err != nil || names[lockKey] == "" {
			return n
		}
		n++
	}
}

// A Group is what viewers take for one lock: a plain lock, a semaphore with its permits, or a read-write lock
// with its readers and its writer.
type Group struct {
	// Lock is the lock as a whole. That of a plain lock is its row. Any other has the LOCK_KEY and the key of the
	// semaphore or the read-write lock, holder and age of the row that is held for the longest time, and the
	// time left of the lease that ends first. Rows that have expired count only if none is held, and those that were
	// released only if no other has expired.
	Lock
	// Kind is [seatkey.Permit], [seatkey.Reader], or "" for a plain lock.
	Kind string
	// Rows are the rows: a writer's first, then those of permits or readers by number, then the turn's.
	Rows []Lock

	total int // how many permits there are, or 0 if that is not known
}

// Grouped returns locks by what they are rows of, in the order of the first rows.
func Grouped(locks []Lock) (groups []Group) {
	type id struct{ region, lockKey, kind string }
	hasReaders := make(map[id]bool)
	for _, l := range locks {
		if l.Seat.Kind == seatkey.Reader {
			hasReaders[id{l.Region, l.Seat.Of, seatkey.Reader}] = true
		}
	}
	at := make(map[id]int, len(locks))
	for _, l := range locks {
		of := id{l.Region, cmp.Or(l.Seat.Of, l.LockKey), l.Seat.Kind}
		if readers := (id{l.Region, l.LockKey, seatkey.Reader}); hasReaders[readers] {
			of = readers // it is the writer's
		}
		i, ok := at[of]
		if !ok {
			i, at[of] = len(groups), len(groups)
			groups = append(groups, Group{Kind: of.kind})
		}
		groups[i].Rows = append(groups[i].Rows, l)
	}
	for i := range groups {
		groups[i].summarize()
	}
	return groups
}

// summarize sorts the rows, and makes Lock of them.
func (g *Group) summarize() {
	slices.SortFunc(g.Rows, func(a, b Lock) int { // numbers have three digits at most, and a writer has none
		return cmp.Or(cmp.Compare(len(a.Seat.Number), len(b.Seat.Number)), strings.Compare(a.Seat.Number, b.Seat.Number))
	})
	rows := g.telling()
	g.Lock = slices.MaxFunc(rows, func(a, b Lock) int { return cmp.Compare(a.Age, b.Age) })
	next := slices.MinFunc(rows, func(a, b Lock) int { return cmp.Compare(a.Left, b.Left) })
	g.Left, g.Full, g.TTL, g.Seat = next.Left, next.Full, next.TTL, Seat{}
	if seat := g.Rows[len(g.Rows)-1].Seat; seat.Kind != "" {
		g.LockKey, g.Key, g.total = seat.Of, seat.Key, seat.Total
	}
}

// telling returns the rows that tell the state of the lock: those that are held; if there are none, those whose holders
// have not released them; or else all. That of a caller that waits tells it only if there is no other.
func (g *Group) telling() []Lock {
	seats := without(g.Rows, isTurn)
	for _, rows := range [][]Lock{without(seats, Lock.Expired), without(seats, Lock.Released), seats} {
		if len(rows) > 0 {
			return rows
		}
	}
	return g.Rows
}

// held returns the rows that are held, without that of a caller that waits.
func (g *Group) held() []Lock { return without(without(g.Rows, isTurn), Lock.Expired) }

func isTurn(l Lock) bool { return l.Seat.Number == seatkey.TurnNumber }

func without(locks []Lock, those func(Lock) bool) []Lock {
	return slices.DeleteFunc(slices.Clone(locks), those)
}

// Others returns how many rows have a holder beside the one that is shown: all but those that were released.
func (g *Group) Others() int {
	n := -1
	for _, l := range g.Rows {
		if !l.Released() {
			n++
		}
	}
	return max(n, 0)
}

// Count says how much is held of a semaphore, "2/3" or "2 permits", or of a read-write lock, "2 readers", and
// whether a caller waits in turn. It is "" for a plain lock.
func (g *Group) Count() string {
	if g.Kind == "" {
		return ""
	}
	held, text := g.held(), ""
	if len(held) > 0 && held[0].Seat.Kind == "" {
		held, text = held[1:], "writer, "
	}
	text += fmt.Sprintf("%d %s", len(held), g.Kind)
	switch {
	case g.total > 0 && len(held) <= g.total:
		text = fmt.Sprintf("%d/%d", len(held), g.total)
	case len(held) != 1:
		text += "s"
	}
	if last := g.Rows[len(g.Rows)-1]; last.Seat.Number == seatkey.TurnNumber && !last.Expired() {
		text += ", waited for"
	}
	return text
}

// Matches reports whether a search fits the lock or one of its rows: see [Lock.Matches].
func (g *Group) Matches(search string) bool {
	return g.Lock.Matches(search) || slices.ContainsFunc(g.Rows, func(l Lock) bool { return l.Matches(search) })
}
