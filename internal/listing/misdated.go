package listing

import (
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clientid"
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
		if row.Age < -tolerance && !clientid.IsOwn(row.Holder) {
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
		if written && row.Left < -atMost-tolerance && !clientid.IsOwn(row.Holder) {
			behind, by = append(behind, row), max(by, -row.Left-atMost)
		}
	}
	return behind, by
}

// Limits of what Zoned takes for times of another zone.
const (
	leastOffset = 15 * time.Minute // zones differ by a multiple of it
	maxOffset   = 14 * time.Hour
	maxLease    = 5 * time.Minute // a longer one would be found too often
)

// Zoned returns the rows of other programs that have expired, and would be held if their times were off by a
// whole number of quarter hours, as times are that something converts between time zones. It also returns by how much
// the first one would be off. A row that its holder has left behind is like that for as long as a lease lasts in every
// quarter of an hour, so that nothing may rely on it.
func Zoned(rows []sqllock.Row) (zoned []sqllock.Row, by time.Duration) {
	for _, row := range rows {
		offset := (-row.Left).Truncate(leastOffset) + leastOffset
		lease := row.Age + row.Left
		if !row.Expired() || lease > maxLease || row.Left+offset > lease || offset > maxOffset || clientid.IsOwn(row.Holder) {
			continue
		}
		if zoned = append(zoned, row); len(zoned) == 1 {
			by = offset
		}
	}
	return zoned, by
}

// Whole returns the rows of other programs that were created in whole seconds, or nil: their driver cuts the
// fractions, so that a lease may end up to a second before its holder knows. The fraction of the database's time is not
// known, and so it is rows of one fraction that count, if there are two at least, and as many as others. It takes rows
// whose ages are of one instant, as MySQL's and MariaDB's are, where drivers do so.
func Whole(rows []sqllock.Row) []sqllock.Row {
	byFraction, others := make(map[time.Duration][]sqllock.Row), 0
	var whole []sqllock.Row
	for _, row := range rows {
		if clientid.IsOwn(row.Holder) {
			continue
		}
		others++
		fraction := (row.Age%time.Second + time.Second) % time.Second
		same := append(byFraction[fraction], row)
		byFraction[fraction] = same
		if len(same) > len(whole) && same[0].Age != row.Age {
			whole = same
		}
	}
	if 2*len(whole) < others {
		return nil
	}
	return whole
}

// HasOthers reports whether another program than sqllock uses the table.
func (r Reading) HasOthers() bool {
	for _, row := range r.Rows {
		if !clientid.IsOwn(row.Holder) {
			return true
		}
	}
	return false
}
