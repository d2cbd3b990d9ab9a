package show

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
	"github.com/sqllock/sqllock/internal/listing"
)

// stateFree is the state of a lock without a row, or stateShared if permits or readers of it have some.
// [listing.Lock.State] has the others.
const stateFree, stateShared = "free", "shared"

// stateExpired is that of a row whose holder has neither finished nor renewed it.
const stateExpired = "expired"

// A rowView is a row as the commands show it. Its JSON form is documented in
// docs/cli.md; fields are only ever added. An unknown or missing value is null.
type rowView struct {
	Key     *string      `json:"key"`
	LockKey string       `json:"lock_key"`
	Region  string       `json:"region"`
	State   string       `json:"state"`
	Holder  *string      `json:"holder"`
	Process *processView `json:"process"`
	Age     *float64     `json:"age_seconds"`
	Left    *float64     `json:"left_seconds"`
	Expired bool         `json:"expired"`
	Pinned  *pinView     `json:"pinned"`
	Waiters []waiterView `json:"waiters"` // nil if they were not asked for
	TTL     *float64     `json:"ttl_seconds"`
	Renewed *float64     `json:"renewed_seconds"`
	Overdue *bool        `json:"overdue"`

	row  sqllock.Row
	ttl  time.Duration // or 0
	seat listing.Seat
}

// A processView is a process as the commands show it.
type processView struct {
	Host        *string `json:"host"`
	PID         *int    `json:"pid"`
	Application *string `json:"application"`
	Version     *string `json:"version"`
}

func viewOf(lock listing.Lock) rowView {
	row := lock.Row
	v := rowView{
		Key: known(lock.Key), LockKey: row.LockKey, Region: row.Region, State: lock.State(), Expired: lock.State() == stateExpired,
		Holder: &row.Holder, Age: seconds(row.Age), Left: seconds(row.Left),
		row: row, seat: lock.Seat,
	}
	v.Process = viewOfProcess(row.Process)
	return v
}

// viewOfProcess returns nil for a process that is not known.
func viewOfProcess(p sqllock.Process) *processView {
	if p == (sqllock.Process{}) {
		return nil
	}
	return &processView{known(p.Host), known(p.PID), known(p.Application), known(p.Version)}
}

// addTTLs adds to rows when their leases were renewed, as far as that is known.
func addTTLs(ctx context.Context, r *sqllock.Repository, rows ...*rowView) {
	locks := make([]listing.Lock, len(rows))
	for i, v := range rows {
		locks[i] = listing.Lock{Row: v.row}
	}
	listing.ReadTTLs(ctx, r, locks)
	for i, v := range rows {
		if ago, ok := locks[i].Renewed(); ok {
			overdue := locks[i].Overdue()
			v.ttl, v.TTL, v.Renewed, v.Overdue = locks[i].TTL, seconds(locks[i].TTL), seconds(ago), &overdue
		}
	}
}

// viewsOf never returns nil: an empty list is [] in JSON.
func viewsOf(locks []listing.Lock) []rowView {
	views := make([]rowView, len(locks))
	for i, lock := range locks {
		views[i] = viewOf(lock)
	}
	return views
}

// viewOfKey returns the view of a key whose row may not exist.
func viewOfKey(flags *connect.Flags, r *sqllock.Repository, key string, row sqllock.Row, ok bool) rowView {
	if ok {
		return viewOf(named([]sqllock.Row{row}, key)[0])
	}
	lockKey, _ := r.LockKey(key) // it was mapped before
	return rowView{Key: &key, LockKey: lockKey, Region: flags.Region, State: stateFree}
}

// named returns rows with their keys. given are keys that may be among them.
func named(rows []sqllock.Row, given ...string) []listing.Lock {
	return listing.Named(rows, state.Keys(given...))
}

// known returns nil for a zero value.
func known[T comparable](value T) *T {
	var unknown T
	if value == unknown {
		return nil
	}
	return &value
}

// seconds returns a duration in seconds, in whole milliseconds.
func seconds(d time.Duration) *float64 {
	s := float64(d.Milliseconds()) / 1000
	return &s
}

// textOf returns a text that is safe to print, or a dash for none.
func textOf(text string) string {
	if text == "" {
		return "-"
	}
	return format.Printable(text)
}

// keyText returns the key, or a dash.
func (v rowView) keyText() string {
	if v.Key == nil {
		return "-"
	}
	return format.Printable(*v.Key)
}

// nameText returns the key for people, for a seat as [listing.Lock.Name] does.
func (v rowView) nameText() string {
	if v.seat.Key == "" {
		return v.keyText()
	}
	return format.Printable(v.seat.Kind + " " + v.seat.Number + " of " + v.seat.Key)
}

// keyOrHash is nameText, or the LOCK_KEY if the key is not known.
func (v rowView) keyOrHash() string {
	if v.Key == nil {
		return format.Printable(v.LockKey)
	}
	return v.nameText()
}

// processText returns the process that holds the lock, or its CLIENT_ID if the process is not known.
func (v rowView) processText() string {
	if v.Process == nil {
		return textOf(v.row.Holder)
	}
	return format.Printable(v.row.Process.String())
}

// holderText returns the process and its CLIENT_ID.
func (v rowView) holderText() string {
	if v.Process == nil {
		return v.processText()
	}
	return v.processText() + " (" + textOf(v.row.Holder) + ")"
}

// ageText returns how long ago the lock was acquired. A time in the future is that of a row that is kept in the
// four-column layout, or of another program whose clock or time zone is wrong.
func (v rowView) ageText() string {
	if v.row.Age < -time.Second {
		return "in " + format.Duration(-v.row.Age)
	}
	return format.Duration(v.row.Age) + " ago"
}

// leftText returns the time left, or how long ago the lease ended, or a dash for a row that was released: it may have been
// given an end before that.
func (v rowView) leftText() string {
	if v.row.Released() {
		return "-"
	}
	if v.row.Expired() {
		return "ended " + format.Duration(-v.row.Left) + " ago"
	}
	if v.Overdue != nil && *v.Overdue {
		return format.Duration(v.row.Left) + ", overdue"
	}
	return format.Duration(v.row.Left)
}

// renewedText returns when the lease was renewed, or "" if that is not known.
func (v rowView) renewedText() string {
	if v.Renewed == nil {
		return ""
	}
	text := fmt.Sprintf("%s ago, to last for %s", format.Duration(v.ttl-v.row.Left), format.Duration(v.ttl))
	if *v.Overdue {
		text += ": overdue; its process is stopped or cut off from the database, or the row is pinned"
	}
	return text
}
