package show

import (
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
)

// The states of a lock, as list and show name them.
const (
	stateHeld    = "held"
	stateExpired = "expired"
	stateFree    = "free"
)

// A rowView is a row as the commands show it. Its JSON form is documented in
// docs/cli.md; fields are only ever added. An unknown or missing value is null.
type rowView struct {
	Key     *string  `json:"key"`
	LockKey string   `json:"lock_key"`
	Region  string   `json:"region"`
	State   string   `json:"state"`
	Holder  *string  `json:"holder"`
	Age     *float64 `json:"age_seconds"`
	Left    *float64 `json:"left_seconds"`
	Expired bool     `json:"expired"`

	age, left time.Duration
}

func viewOf(row sqllock.Row, known state.KnownKeys) rowView {
	v := rowView{
		LockKey: row.LockKey, Region: row.Region, State: stateHeld, Expired: row.Expired(),
		Holder: &row.Holder, Age: seconds(row.Age), Left: seconds(row.Left),
		age: row.Age, left: row.Left,
	}
	if row.Expired() {
		v.State = stateExpired
	}
	if key, ok := known.KeyOf(row.LockKey); ok {
		v.Key = &key
	}
	return v
}

// viewsOf never returns nil: an empty list is [] in JSON.
func viewsOf(rows []sqllock.Row, known state.KnownKeys) []rowView {
	views := make([]rowView, len(rows))
	for i, row := range rows {
		views[i] = viewOf(row, known)
	}
	return views
}

// seconds returns a duration in seconds, in whole milliseconds.
func seconds(d time.Duration) *float64 {
	s := float64(d.Milliseconds()) / 1000
	return &s
}

// keyText returns the key, or a dash.
func (v rowView) keyText() string {
	if v.Key == nil {
		return "-"
	}
	return format.Printable(*v.Key)
}

// holderText returns the holder, or a dash.
func (v rowView) holderText() string {
	if v.Holder == nil || *v.Holder == "" {
		return "-"
	}
	return format.Printable(*v.Holder)
}

// leftText returns the time left, or how long ago the lease ended.
func (v rowView) leftText() string {
	if v.Expired {
		return "ended " + format.Duration(-v.left) + " ago"
	}
	return format.Duration(v.left)
}
