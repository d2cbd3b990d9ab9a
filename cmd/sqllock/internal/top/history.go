package top

import (
	"fmt"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/internal/listing"
)

// maxHolds is how many acquisitions are remembered. The oldest are forgotten.
const maxHolds = 10_000

// A hold is one acquisition, as far as the readings show it.
type hold struct {
	of      lockID
	row     listing.Lock // as it was read last
	read    time.Time    // when that was
	since   time.Time
	until   time.Time // zero while the row is in the table, and not released
	ended   string    // how
	renewed int
}

// A history is the acquisitions that were seen. One that begins and ends between two readings is not seen.
type history struct {
	began time.Time
	holds []*hold         // the oldest first
	last  map[rowID]*hold // those that have not ended
}

// note adds a reading, in groups.
func (h *history) note(now reading, groups []listing.Group) {
	if h.began.IsZero() {
		h.began = now.at
	}
	last := make(map[rowID]*hold, len(now.locks))
	for _, g := range groups {
		for _, l := range g.Rows {
			if l.Released() { // it is what an acquisition has left behind
				continue
			}
			a, known := h.last[idOf(l.Row)]
			if !known {
				a = &hold{of: lockOf(g), since: now.at.Add(-l.Age)}
				h.holds = append(h.holds, a)
			} else if l.Left > a.row.Left {
				a.renewed++
			}
			a.row, a.read = l, now.at
			last[idOf(l.Row)] = a
		}
	}
	for id, a := range h.last {
		if last[id] == nil {
			a.end(now)
		}
	}
	h.last = last
	h.holds = h.holds[max(len(h.holds)-maxHolds, 0):]
}

// end notes that a reading does not have the row, or that it was released.
func (a *hold) end(now reading) {
	a.until = now.at
	switch expiry := a.read.Add(a.row.Left); {
	case now.more:
		a.ended = "beyond the limit"
	case expiry.Before(now.at):
		a.row.Left = -1
		a.until, a.ended = expiry, a.row.State()
	default:
		a.ended = "released"
	}
}

// lines returns a line for each acquisition of a lock, the last one first.
func (h *history) lines(of lockID, now time.Time) (lines []string) {
	for i := len(h.holds) - 1; i >= 0; i-- {
		if h.holds[i].of == of {
			lines = append(lines, h.holds[i].line(now))
		}
	}
	return lines
}

func (a *hold) line(now time.Time) string {
	until, state := "now", a.row.State()
	if !a.until.IsZero() {
		until, state = clock(a.until, now), a.ended
		now = a.until
	}
	line := fmt.Sprintf("%s – %s  %s %s", clock(a.since, now), pad(until, 8), state, format.Duration(now.Sub(a.since)))
	if a.renewed > 0 {
		line += fmt.Sprintf(", renewed %d×", a.renewed)
	}
	if a.row.Seat.Kind != "" {
		line += ", " + seatName(a.row)
	}
	return line + ", " + a.row.HeldBy()
}

// clock returns a time as now shows it: without the day if that is today.
func clock(t, now time.Time) string {
	if t.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return t.Format("2 Jan 15:04:05")
	}
	return t.Format(time.TimeOnly)
}
