package show

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
)

// A pinView is a transaction that has the row locked. A short one is that of a process that tries to acquire.
type pinView struct {
	Session string   `json:"session"`
	Since   *float64 `json:"seconds"`

	pin sqllock.Pin
}

// text returns what a person wants to know.
func (v *pinView) text() string { return format.Printable(v.pin.String()) }

// pinOf returns what has the row of a key locked for longer than a moment, or nil.
func pinOf(ctx context.Context, r *sqllock.Repository, key string) *pinView {
	pin, ok := r.Pin(ctx, key)
	switch {
	case !ok, pin.Since >= 0 && pin.Since < time.Second:
		return nil
	case pin.Since < 0:
		return &pinView{Session: pin.Session, pin: pin}
	default:
		return &pinView{pin.Session, seconds(pin.Since), pin}
	}
}

// A table may have many expired rows, which nobody uses any more, and a server may be slow
// to say who has one locked.
const (
	maxPins  = 100
	pinsTake = 2 * time.Second
)

// addPins asks which rows that have expired are pinned: another process should have acquired them. It asks about
// rows of the repository's region only, and about so many.
func addPins(ctx context.Context, r *sqllock.Repository, rows []rowView) {
	ctx, cancel := context.WithTimeout(ctx, pinsTake)
	defer cancel()
	asked := 0
	for i, v := range rows {
		if key, ok := v.lockedAs(r); ok && v.row.Expired() && asked < maxPins && ctx.Err() == nil {
			rows[i].Pinned = pinOf(ctx, r, key)
			asked++
		}
	}
}

// lockedAs returns a key that has the row in the repository, if there is one.
func (v rowView) lockedAs(r *sqllock.Repository) (string, bool) {
	if v.Region != r.Region() {
		return "", false
	}
	keys := []string{v.LockKey}
	if v.Key != nil {
		keys = append(keys, *v.Key)
	}
	for _, key := range keys {
		if lockKey, err := r.LockKey(key); err == nil && lockKey == v.LockKey {
			return key, true
		}
	}
	return "", false
}
