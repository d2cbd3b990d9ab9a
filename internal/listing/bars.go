package listing

import (
	"slices"
	"time"

	"github.com/sqllock/sqllock"
)

// Bars know how long leases last, so that the time left can be shown as a part of that. A row
// does not contain its time-to-live. The longest time left that was seen is near to it once
// the row was renewed; until then it is taken for the next round number. A Bars is not safe for
// concurrent use.
type Bars struct {
	full map[acquired]time.Duration
}

// acquired is one acquisition.
type acquired struct{ region, lockKey, holder string }

// round are the times-to-live that are usual.
var round = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
}

// Fill sets Full of each lock. It forgets the acquisitions that are not among them.
func (b *Bars) Fill(locks []Lock) {
	full := make(map[acquired]time.Duration, len(locks))
	for i := range locks {
		row := locks[i].Row
		id := acquired{row.Region, row.LockKey, row.Holder}
		full[id] = max(b.full[id], row.Left, 0)
		if full[id] == row.Left { // it is new, or lasts longer than before
			full[id] = atMost(row)
		}
		locks[i].Full = full[id]
	}
	b.full = full
}

// atMost returns the round number above the time left of a row. Since a lease cannot have more left
// than its time-to-live, that of a row that was not renewed is no longer than its age and
// the time left together.
func atMost(row sqllock.Row) time.Duration {
	next, _ := slices.BinarySearch(round, row.Left)
	if next == len(round) {
		return row.Left
	}
	if never := row.Age + row.Left; never >= row.Left && never < round[next] {
		return never
	}
	return round[next]
}
