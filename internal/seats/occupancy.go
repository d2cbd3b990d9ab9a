package seats

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/jitter"
)

// An Occupancy is which rows of a set were held when one statement read them.
type Occupancy struct {
	set  *Set
	held map[string]sqllock.Row // by key
	over []string               // the keys of rows that had expired, without a release
}

// Read reads the turn, all seats and the rows of other keys by one statement. The errors are those
// of [sqllock.Repository.PeekAll].
func (s *Set) Read(ctx context.Context, others ...string) (Occupancy, error) {
	ours := s.memory.ours()
	rows, err := s.registry.Repository().PeekAll(ctx, slices.Concat(s.keys, []string{s.turn}, others)...)
	if err != nil {
		return Occupancy{}, err
	}
	o := Occupancy{set: s, held: rows}
	for key, row := range rows {
		if row.Expired() || s.IsLeftover(row) {
			delete(rows, key)
			if !row.Kept() { // otherwise it was released
				o.over = append(o.over, key)
			}
		}
	}
	s.memory.note(o, ours)
	return o, nil
}

// IsLeftover reports whether row, which seems held, has no holder: it was written for a caller of this process that had given up.
// To acquire it deletes it.
func (s *Set) IsLeftover(row sqllock.Row) bool { return s.locks.IsLeftover(row.LockKey, row.Holder) }

// Held returns the row of a key that was read. ok is false if it was free: there was no row, or it
// had expired.
func (o Occupancy) Held(key string) (row sqllock.Row, ok bool) {
	row, ok = o.held[key]
	return row, ok
}

// Turn returns the row of the turn. ok is false if no caller had it.
func (o Occupancy) Turn() (row sqllock.Row, ok bool) { return o.Held(o.set.turn) }

// ExpiredSeats returns the keys of the seats whose rows are left although their leases have ended: see
// [Set.TakeOver].
func (o Occupancy) ExpiredSeats() []string {
	return slices.DeleteFunc(slices.Clone(o.over), func(key string) bool { return !slices.Contains(o.set.keys, key) })
}

// Free returns the keys of the free seats in random order, without those of leases that the caller
// has: see [Set.Carried]. Callers that choose the first ones seldom choose the same. Those that other callers
// of this process are about to lock come last.
func (o Occupancy) Free(without []*sqllock.Lease) []string {
	var own, free []string
	for _, lease := range without {
		own = append(own, lease.Keys()...)
	}
	for _, key := range o.set.keys {
		if _, held := o.held[key]; !held && !slices.Contains(own, key) {
			free = append(free, key)
		}
	}
	for i := len(free) - 1; i > 0; i-- { // as rand.Shuffle does it, with numbers that a test can repeat
		j := jitter.N(int64(i + 1))
		free[i], free[j] = free[j], free[i]
	}
	ours := o.set.memory.ours()
	slices.SortStableFunc(free, func(a, b string) int {
		return cmp.Compare(slices.Index(ours, a), slices.Index(ours, b)) // -1 for those that are not in it
	})
	return free
}

// Next returns the row of the seat whose lease ends first, or the zero Row if no seat is held.
func (o Occupancy) Next() sqllock.Row {
	rows := o.seats()
	if len(rows) == 0 {
		return sqllock.Row{}
	}
	return slices.MinFunc(rows, func(a, b sqllock.Row) int { return cmp.Compare(a.Left, b.Left) })
}

// seats returns the rows of the seats that were held, by number.
func (o Occupancy) seats() (rows []sqllock.Row) {
	for _, key := range o.set.keys {
		if row, ok := o.held[key]; ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// A Holder has one seat or several.
type Holder struct {
	ID    string // what stands in CLIENT_ID
	Seats int
	Age   time.Duration // since it got the first of them
	Left  time.Duration // until the first of them ends, by the database's clock
}

// Holders returns the holders of seats, the oldest first.
func (o Occupancy) Holders() []Holder {
	byID := make(map[string]Holder)
	for _, row := range o.seats() {
		h, ok := byID[row.Holder]
		if !ok {
			h = Holder{ID: row.Holder, Age: row.Age, Left: row.Left}
		}
		h.Seats++
		h.Age, h.Left = max(h.Age, row.Age), min(h.Left, row.Left)
		byID[row.Holder] = h
	}
	holders := make([]Holder, 0, len(byID))
	for _, h := range byID {
		holders = append(holders, h)
	}
	slices.SortFunc(holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Age, a.Age), strings.Compare(a.ID, b.ID))
	})
	return holders
}
