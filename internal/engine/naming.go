package engine

import (
	"context"
	"iter"
	"maps"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/names"
	"github.com/sqllock/sqllock/internal/seatkey"
)

const (
	// namingEvery is the pause between two statements that write names. A lock that is released before the next one
	// costs none.
	namingEvery = names.NamedAfter
	// namingShare is how much longer the pause is for each lock that is held or waited for: all are looked at.
	namingShare = 10 * time.Microsecond
	// namedFor is how long a name need not be written again. The table of names keeps it for longer.
	namedFor = time.Hour
	// keptNameTimeout limits how long an Unlock waits for the name of a row that stays.
	keptNameTimeout = 250 * time.Millisecond
)

// A naming writes the keys of locks that are held or waited for for long, and what this process calls itself, to the table of
// names: by a timer, which runs while there are such locks, one statement at a time. [Locks].mu guards it.
type naming struct {
	process string         // what this process calls itself; "" has nothing written
	timer   *time.Timer    // or nil
	running bool           // the timer, or what it has begun
	writing sync.WaitGroup // what it has begun
	left    bool           // the timer is to write nothing more
	before  uint64         // the callers up to this one had arrived when the timer was set
	named   time.Time      // when the process was
	cleared time.Time      // when old names were deleted
	notice  notice         // of what callers wait for; the timer writes it, and what ends the timer
}

// ProcessName is what this process calls itself in the table of names, or "" if it writes nothing there.
func (s *Locks) ProcessName() string { return s.naming.process }

// namedAt is how a local lock notes that its key was named at an instant. One with 0, of which that is not known, is due from
// the first lock on.
func (s *Locks) namedAt(now time.Time) time.Duration { return now.Sub(s.began) + namedFor }

// nameLocked starts the timer that names the keys of callers that wait, or hold a lock, for long.
func (s *Locks) nameLocked() {
	s.naming.running = true
	s.setNamingTimerLocked()
}

func (s *Locks) setNamingTimerLocked() {
	n := &s.naming
	n.before = s.arrived
	pause := namingEvery + time.Duration(len(s.holds)+len(s.waiting))*namingShare
	if n.timer == nil {
		n.cleared = time.Now().Add(-jitter.N(namedFor)) // so that of processes that do not last one does it now and then
		n.timer = time.AfterFunc(pause, s.writeNames)
	} else {
		n.timer.Reset(pause)
	}
}

// writeNames is what the timer calls.
func (s *Locks) writeNames() {
	n, keys := &s.naming, make(map[string]string)
	s.mu.Lock()
	if s.closing.Err() != nil || n.left || len(s.holds)+len(s.waiting) == 0 && !n.notice.isUp() {
		n.running = false
		s.mu.Unlock()
		return
	}
	n.writing.Add(1) // before Close, which waits for it, has mu
	defer n.writing.Done()
	now := time.Now()
	unnamed := s.unnamedLocked(now, keys)
	holds := s.longHoldsLocked()
	mayClear := now.Sub(n.cleared) >= namedFor
	s.mu.Unlock()

	for _, h := range holds {
		// With a MaxHold the holder works properly after its last renewal, too: nothing is said of such a lease.
		s.table.Names.NoteLease(h.ttl, h.autoRenew && s.maxHold == 0, h.lease.mayOutlastTTL())
	}
	s.write(s.closing, now, keys, unnamed)
	n.notice.write(s.closing, now, s.tracker.Long(noticeAfter))
	cleared := mayClear && !s.table.Names.DeleteOld(s.closing)

	s.mu.Lock()
	defer s.mu.Unlock()
	if cleared {
		n.cleared = now
	}
	s.setNamingTimerLocked()
}

// nameKept names a hold that was too short for the timer, and whose row stays, as for a minimum hold. The caller waits
// for it.
func (s *Locks) nameKept(ctx context.Context, h *hold) {
	ctx, cancel := context.WithTimeout(ctx, keptNameTimeout)
	defer cancel()
	now, keys := time.Now(), make(map[string]string)
	s.mu.Lock()
	var unnamed []*localLock
	if s.naming.process != "" {
		unnamed = s.addUnnamedLocked(h, now, keys)
	}
	s.mu.Unlock()
	s.write(ctx, now, keys, unnamed)
}

// LeaveNamed names the locks that are held, at once, and writes that nothing is waited for any more: for a process that ends
// without Close, and leaves them held. The timer writes nothing after that.
func (s *Locks) LeaveNamed(ctx context.Context) {
	s.mu.Lock()
	s.naming.left = true
	s.stopNamingLocked()
	s.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, keptNameTimeout)
	defer cancel()
	_, err := bounded.Do(limited, 0, func() (none struct{}, _ error) { s.naming.writing.Wait(); return none, nil }, nil)
	for _, h := range s.allHolds() {
		s.nameKept(ctx, h)
	}
	if err == nil { // otherwise the timer's statement has had no answer
		s.naming.notice.withdraw(ctx)
	}
}

// write writes keys by LOCK_KEY, and what this process calls itself if that is due.
func (s *Locks) write(ctx context.Context, now time.Time, keys map[string]string, unnamed []*localLock) {
	if len(keys) == 0 && !s.table.Names.HasUnwrittenLeases() {
		return
	}
	process := ""
	s.mu.Lock()
	if now.Sub(s.naming.named) >= namedFor {
		process = s.naming.process
	}
	s.mu.Unlock()
	if !s.table.Names.Write(ctx, keys, process) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range unnamed {
		l.named = s.namedAt(now)
	}
	if process != "" {
		s.naming.named = now
	}
}

// unnamedLocked adds to keys those to be named, by LOCK_KEY, and returns their local locks.
func (s *Locks) unnamedLocked(now time.Time, keys map[string]string) (unnamed []*localLock) {
	for _, holds := range []iter.Seq[*hold]{maps.Keys(s.holds), maps.Keys(s.waiting)} {
		for h := range holds {
			if h.arrived <= s.naming.before {
				unnamed = append(unnamed, s.addUnnamedLocked(h, now, keys)...)
			}
		}
	}
	return unnamed
}

// longHoldsLocked returns what was held before the timer was set.
func (s *Locks) longHoldsLocked() (long []*hold) {
	for h := range s.holds {
		if h.arrived <= s.naming.before {
			long = append(long, h)
		}
	}
	return long
}

// addUnnamedLocked is unnamedLocked for one hold.
func (s *Locks) addUnnamedLocked(h *hold, now time.Time, keys map[string]string) (unnamed []*localLock) {
	for i, l := range h.locals {
		if len(keys) < names.MaxNames && s.namedAt(now)-l.named >= namedFor {
			keys[h.keys[i].lockKey] = s.nameOfLocked(h.keys[i].key)
			unnamed = append(unnamed, l)
		}
	}
	return unnamed
}

// nameOfLocked returns the name of a key: itself, or that of a seat.
func (s *Locks) nameOfLocked(key string) string {
	if lockKey, kind, number, ok := seatkey.Parse(key); ok {
		if l := s.locals.Get(lockKey); l != nil && l.handle != nil {
			return seatkey.Name(kind, number, l.handle.Key())
		}
	}
	return key
}

// stopNamingLocked ends the writing of names. What is being written ends with s.closing.
func (s *Locks) stopNamingLocked() {
	if s.naming.timer != nil {
		s.naming.timer.Stop()
	}
}

// processOf returns what the process that holds a row calls itself, or "". It may ask the database, once for each
// process, unless ctx has ended.
func (s *Locks) processOf(ctx context.Context, row locktable.Row) string {
	if s.naming.process != "" && s.table.IsOwn(row.Holder) {
		return s.naming.process
	}
	if bounded.Ended(ctx) != nil {
		row.Age = 0
	}
	return s.table.Names.Process(ctx, row)
}
