package top

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/runs"
)

// A reading is what the table contained at one moment.
type reading struct {
	at    time.Time
	locks []listing.Lock
	waits listing.Waiters
	more  bool // there are more rows than the limit
	took  time.Duration
	err   error

	runs   []runs.Run // of jobs
	runsAt time.Time  // when these were read
}

// runsEvery is the shortest time between two statements that read the runs of jobs.
const runsEvery = 10 * time.Second

// jobRuns are the runs of jobs as they were read last.
type jobRuns struct {
	last     []runs.Run
	at, next time.Time
}

// A repository is the table in the database.
type repository struct {
	rows  *sqllock.Repository
	limit int               // how many rows to read at most
	known map[string]string // the keys, by LOCK_KEY
	jobs  *jobRuns          // or nil: they are not read
}

func (r repository) read(ctx context.Context) reading {
	began := time.Now()
	rows, err := r.rows.ListFirst(ctx, r.limit+1)
	now := reading{at: time.Now(), more: len(rows) > r.limit, err: err}
	now.took = now.at.Sub(began)
	if j := r.jobs; j != nil && err == nil {
		if !now.at.Before(j.next) {
			if all, err := runs.Read(ctx, r.rows); err == nil { // otherwise those that were read last are shown, whose ages go on
				j.last, j.at = all, time.Now()
			}
			j.next = time.Now().Add(runsEvery)
		}
		now.runs, now.runsAt = j.last, j.at
	}
	rows = rows[:min(len(rows), r.limit)]
	now.locks = listing.Named(rows, r.known)
	if err == nil {
		now.waits = listing.WaitersOf(r.rows.Waiters(ctx))
		listing.ReadTTLs(ctx, r.rows, now.locks)
	}
	return now
}

func (r repository) remove(ctx context.Context, row sqllock.Row) (bool, error) {
	return r.rows.DeleteRow(ctx, row)
}

// pause returns how long to wait until the table is read again: longer than the interval if the
// database takes its time.
func (n reading) pause(interval time.Duration) time.Duration { return max(interval, 10*n.took) }
