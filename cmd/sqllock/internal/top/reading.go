package top

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
)

// A reading is what the table contained at one moment.
type reading struct {
	at    time.Time
	locks []listing.Lock
	more  bool // there are more rows than the limit
	took  time.Duration
	err   error
}

// read reads the table.
func read(ctx context.Context, r *sqllock.Repository, o options) reading {
	began := time.Now()
	rows, err := r.ListFirst(ctx, o.limit+1)
	now := reading{at: time.Now(), more: len(rows) > o.limit, err: err}
	now.took = now.at.Sub(began)
	names := make(map[string]string, len(rows))
	for _, row := range rows[:min(len(rows), o.limit)] {
		if key, ok := o.known.KeyOf(row.LockKey); ok {
			names[row.LockKey] = key
		}
	}
	now.locks = listing.Named(rows[:min(len(rows), o.limit)], names)
	return now
}

// pause returns how long to wait until the table is read again: longer than the interval if the
// database takes its time.
func (n reading) pause(interval time.Duration) time.Duration { return max(interval, 10*n.took) }
