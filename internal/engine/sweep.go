package engine

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
)

// Where the database does not answer, callers give up, and the statements that they have sent may write rows
// later. Such a row has no holder and keeps all out, so it is deleted once the database answers again, whether a
// caller of this process asks or not.

const (
	// firstSweep and longestSweepPause limit the pauses between two sweeps. Each of them is about all leftovers of
	// the table.
	firstSweep        = 500 * time.Millisecond
	longestSweepPause = 15 * time.Second
	// outageSweepPause limits them while the database fails.
	outageSweepPause = 2 * time.Second
	// longestSweep is for how long a server that answers is asked for rows that it may write yet: a COMMIT may wait
	// for room on a disk. After that, only a caller that meets such a row, and Close, delete it.
	longestSweep = 10 * time.Minute
	// tidyAfter is how long a parked row stays without a release, and the pause between two looks at that.
	tidyAfter = 30 * time.Second
)

// A sweeper deletes the leftover rows of the table in the background. mu of [Locks] guards it.
type sweeper struct {
	on    bool
	until time.Time
}

// sweepLater starts the sweep of leftover rows, in the background, if there may be any.
func (s *Locks) sweepLater() {
	if !s.table.Leftovers.Any() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeper.until = time.Now().Add(longestSweep)
	if s.sweeper.on || s.closing.Err() != nil {
		return
	}
	s.sweeper.on = true
	s.background.tasks.Go(s.sweep)
}

// sweep deletes leftover rows until there are none, or the registry is closed, which deletes them itself.
func (s *Locks) sweep() {
	pause := firstSweep
	for bounded.Sleep(s.closing, pause-jitter.N(pause/5)) && s.sweepsOn() {
		pause = min(2*pause, longestSweepPause)
		if s.inTime(s.closing, 0, s.table.Leftovers.DeleteAll) != nil {
			pause = min(pause, outageSweepPause)
			s.sweepLater()
		}
	}
}

// sweepsOn reports whether there may be anything left to sweep.
func (s *Locks) sweepsOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeper.on = s.table.Leftovers.Any() && time.Now().Before(s.sweeper.until)
	return s.sweeper.on
}

// tidyLater starts the goroutine that deletes parked rows which this process has not used for a while.
func (s *Locks) tidyLater() {
	if !s.table.Leftovers.HasParked() || s.tidying.Load() || s.closing.Err() != nil || !s.tidying.CompareAndSwap(false, true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() == nil { // Close waits for what was begun before
		s.background.tasks.Go(s.tidy)
	}
}

// tidy deletes those rows until there are none, or the registry is closed, which deletes them itself.
func (s *Locks) tidy() {
	for bounded.Sleep(s.closing, tidyAfter) {
		if s.table.Leftovers.HasParked() {
			_ = s.deleteParked(s.closing, time.Now().Add(-tidyAfter)) // those that are left are still known
			continue
		}
		s.tidying.Store(false)
		if !s.table.Leftovers.HasParked() || !s.tidying.CompareAndSwap(false, true) {
			return
		}
	}
}

func (s *Locks) deleteParked(ctx context.Context, before time.Time) error {
	return s.inTime(ctx, 0, func(ctx context.Context) error { return s.table.Leftovers.DeleteParked(ctx, before) })
}
