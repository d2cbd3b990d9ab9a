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

// A repository is the table in the database.
type repository struct {
	rows  *sqllock.Repository
	limit int               // how many rows to read at most
	known map[string]string // the keys, by LOCK_KEY
}

func (r repository) read(ctx context.Context) reading {
	began := time.Now()
	rows, err := r.rows.ListFirst(ctx, r.limit+1)
	now := reading{at: time.Now(), more: len(rows) > r.limit, err: err}
	now.took = now.at.Sub(began)
	rows = rows[:min(len(rows), r.limit)]
	now.locks = listing.Named(rows, r.known)
	return now
}

func (r repository) remove(ctx context.Context, row sqllock.Row) (bool, error) {
	return r.rows.DeleteRow(ctx, row)
}

// pause returns how long to wait until the table is read again: longer than the interval if the
// database takes its time.
func (n reading) pause(interval time.Duration) time.Duration { return max(interval, 10*n.took) }
