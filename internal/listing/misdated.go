package listing

import (
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktable"
)

// A Reading is the rows of a table, read between two instants of this process.
type Reading struct {
	Rows       []sqllock.Row
	Began, End time.Time
	// All reports whether Rows are all rows of the table.
	All bool
}

// tolerance is less than what makes a time of a row wrong: clocks differ by that much.
const tolerance = time.Second

// Ahead returns the rows of other programs that were created in the future, and by how much at most. Their host's
// clock is wrong, or something converts their times from one time zone to another. Rows of sqllock's own have such
// a CREATED_DATE in the four-column layout while they are kept.
func Ahead(rows []sqllock.Row) (ahead []sqllock.Row, by time.Duration) {
	for _, row := range rows {
		if row.Age < -tolerance && !locktable.IsOwn(row.Holder) {
			ahead, by = append(ahead, row), max(by, -row.Age)
		}
	}
	return ahead, by
}

// Behind returns the rows of other programs that were written between two readings, and had an end before the first
// one: for sqllock they are free as soon as they are written. It also returns by how much at most.
func Behind(before, after Reading) (behind []sqllock.Row, by time.Duration) {
	old := make(map[place]sqllock.Row, len(before.Rows))
	for _, row := range before.Rows {
		old[place{row.Region, row.LockKey}] = row
	}
	atLeast, atMost := after.Began.Sub(before.End), after.End.Sub(before.Began)
	for _, row := range after.Rows {
		last, ok := old[place{row.Region, row.LockKey}]
		passed := last.Left - row.Left
		written := !ok && before.All || ok && (last.Holder != row.Holder || passed < atLeast-time.Millisecond || passed > atMost+time.Millisecond)
		if written && row.Left < -atMost-tolerance && !locktable.IsOwn(row.Holder) {
			behind, by = append(behind, row), max(by, -row.Left-atMost)
		}
	}
	return behind, by
}

// HasOthers reports whether another program than sqllock uses the table.
func (r Reading) HasOthers() bool {
	for _, row := range r.Rows {
		if !locktable.IsOwn(row.Holder) {
			return true
		}
	}
	return false
}
