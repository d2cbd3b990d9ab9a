package show

import (
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/internal/listing"
)

// A waiterView is a process that waits for a lock for long. Its JSON form is documented in docs/cli.md.
type waiterView struct {
	ClientID string       `json:"client_id"`
	Process  *processView `json:"process"`
	Waited   *float64     `json:"waited_seconds"`
	Callers  int          `json:"callers"`

	waiter sqllock.Waiter
}

// addWaiters adds to rows who waits for them.
func addWaiters(all []sqllock.Waiter, rows []rowView) {
	byLock := listing.WaitersOf(all)
	for i, v := range rows {
		rows[i].Waiters = []waiterView{}
		for _, w := range byLock.Of(listing.Lock{Row: sqllock.Row{Region: v.Region, LockKey: v.LockKey}, Seat: v.seat}) {
			rows[i].Waiters = append(rows[i].Waiters, waiterView{w.ClientID, viewOfProcess(w.Process), seconds(w.Waited), w.Callers, w})
		}
	}
}

// text returns who waits and for how long.
func (v waiterView) text() string {
	callers := ""
	if v.Callers > 1 {
		callers = fmt.Sprintf(" (%d callers)", v.Callers)
	}
	return "by " + listing.WaitedBy(v.waiter) + " for " + format.Duration(v.waiter.Waited) + callers
}

// waitersText returns how many callers wait and for how long, or "".
func (v rowView) waitersText() string {
	waiters := make([]sqllock.Waiter, len(v.Waiters))
	for i, w := range v.Waiters {
		waiters[i] = w.waiter
	}
	return format.Waiters(listing.Total(waiters))
}
