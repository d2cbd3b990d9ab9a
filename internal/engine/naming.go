package engine

import (
	"context"
	"iter"
	"maps"
	"regexp"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/locktable"
)

const (
	// namingEvery is the pause between two statements that write names. A lock that is released before the next one
	// costs none.
	namingEvery = locktable.NamedAfter
	// namingShare is how much longer the pause is for each lock that is held or waited for: all are looked at.
	namingShare = 10 * time.Microsecond
	// namedFor is how long a name need not be written again. The table of names keeps it for longer.
	namedFor = time.Hour
	// waitsAfter is how long callers wait before others are told, and waitsEvery the pause between two statements that
	// tell them, while there are such callers.
	waitsAfter, waitsEvery = 5 * time.Second, 5 * time.Second
	// maxWaits is how many locks others are told of at most: those that have been waited for for the longest time. One
	// row has room for about as many.
	maxWaits = 20
	// keptNameTimeout limits how long an Unlock waits for the name of a row that stays.
	keptNameTimeout = 250 * time.Millisecond
)

// A naming writes the keys of locks that are held or waited for for long, what this process calls itself, and for which
// locks its callers have waited for how long, to the table of names: by a timer, which runs while there are such locks, one statement at a time. [Locks].mu guards it.
type naming struct {
	background
	process string      // what this process calls itself; "" has nothing written
	timer   *time.Timer // or nil
	running bool        // the timer, or what it has begun
	left    bool        // the timer is to write nothing more
	before  uint64      // the callers up to this one had arrived when the timer was set
	began   time.Time
	named   time.Time // when the process was
	cleared time.Time // when old names were deleted

	waitsAs    string               // the ID of the row that has the waits, as a holder; "" until there were some
	waiting    map[string]time.Time // when the LOCK_KEYs that it has were named; empty if it is to be ignored
	waitsSince time.Time            // when it was written
}

func newNaming(closing context.Context, process string) naming {
	return naming{background: background{closing: closing}, process: process, began: time.Now()}
}

// ProcessName is what this process calls itself in the table of names, or "" if it writes nothing there.
func (s *Locks) ProcessName() string { return s.naming.process }

// since is how long ago at now a moment was that lies namedFor before the first lock: an entry with 0 is due.
func (n *naming) since(now time.Time) time.Duration { return now.Sub(n.began) + namedFor }

// nameLocked has the callers that have arrived, and wait or hold a lock for long, named.
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
	if s.closing.Err() != nil || n.left || len(s.holds)+len(s.waiting)+len(n.waiting) == 0 {
		n.running = false
		s.mu.Unlock()
		return
	}
	n.tasks.Add(1) // before Close, which waits for it, has mu
	defer n.tasks.Done()
	now := time.Now()
	unnamed := s.unnamedLocked(now, keys)
	holds := s.longHoldsLocked()
	mayClear := now.Sub(n.cleared) >= namedFor
	s.mu.Unlock()

	for kind := range s.kindsOf(holds) {
		s.table.NoteLease(kind.ttl, kind.renewed, kind.extended)
	}
	s.write(s.closing, now, keys, unnamed)
	s.writeWaits(s.closing, now)
	cleared := mayClear && !s.table.DeleteOldNames(s.closing)

	s.mu.Lock()
	defer s.mu.Unlock()
	if cleared {
		n.cleared = now
	}
	s.setNamingTimerLocked()
}

// nameKept has a hold named that was too short for the timer, and whose row stays, as for a minimum hold. The caller waits
// for it.
func (s *Locks) nameKept(ctx context.Context, h *hold) {
	ctx, cancel := context.WithTimeout(ctx, keptNameTimeout)
	defer cancel()
	now, keys := time.Now(), make(map[string]string)
	s.mu.Lock()
	var unnamed []*entry
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
	_, err := bounded.Do(limited, 0, func() (none struct{}, _ error) { s.naming.tasks.Wait(); return none, nil }, nil)
	for _, h := range s.allHolds() {
		s.nameKept(ctx, h)
	}
	if err == nil { // otherwise the timer's statement has had no answer
		s.endWaits(ctx)
	}
}

// write writes keys by LOCK_KEY, and what this process calls itself if that is due.
func (s *Locks) write(ctx context.Context, now time.Time, keys map[string]string, unnamed []*entry) {
	if len(keys) == 0 && !s.table.HasUnwrittenLeases() {
		return
	}
	process := ""
	s.mu.Lock()
	if now.Sub(s.naming.named) >= namedFor {
		process = s.naming.process
	}
	s.mu.Unlock()
	if !s.table.WriteNames(ctx, keys, process) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range unnamed {
		e.named = s.naming.since(now)
	}
	if process != "" {
		s.naming.named = now
	}
}

// writeWaits writes what callers have waited for for long, at most once in waitsEvery, and at the next run of the timer
// that there is nothing any more. Readers ignore a row that is not written again: so does one that could not be written.
func (s *Locks) writeWaits(ctx context.Context, now time.Time) {
	n, long := &s.naming, s.waits.Long(waitsAfter)
	if len(long) == 0 && len(n.waiting) == 0 || len(long) > 0 && now.Sub(n.waitsSince) < waitsEvery {
		return
	}
	long = long[:min(len(long), maxWaits)]
	waits, names, waiting := make([]locktable.Wait, len(long)), make(map[string]string), make(map[string]time.Time)
	for i, w := range long {
		waits[i] = locktable.Wait{LockKey: w.LockKey, Waited: w.Waited, Callers: w.Callers}
		named := n.waiting[w.LockKey]
		if now.Sub(named) >= namedFor { // that of a semaphore is not held: nothing else names it
			names[w.LockKey], named = w.Key, now
		}
		waiting[w.LockKey] = named
	}
	if n.waitsAs == "" {
		n.waitsAs = s.table.NewHolder()
	}
	written := s.table.WriteWaits(ctx, n.waitsAs, waits, names)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.waitsSince = now; written || len(waiting) == 0 {
		n.waiting = waiting
	}
}

// endWaits writes that there are no waits any more, if others were told of some. The caller waits for it.
func (s *Locks) endWaits(ctx context.Context) {
	if len(s.naming.waiting) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, keptNameTimeout)
	defer cancel()
	s.table.WriteWaits(ctx, s.naming.waitsAs, nil, nil)
}

// unnamedLocked adds to keys those to be named, by LOCK_KEY, and returns their entries.
func (s *Locks) unnamedLocked(now time.Time, keys map[string]string) (unnamed []*entry) {
	for _, holds := range []iter.Seq[*hold]{maps.Keys(s.holds), maps.Keys(s.waiting)} {
		for h := range holds {
			if h.arrived <= s.naming.before {
				unnamed = append(unnamed, s.addUnnamedLocked(h, now, keys)...)
			}
		}
	}
	return unnamed
}

// A leaseKind is what others need to know of a lease to judge how long ago it was renewed.
type leaseKind struct {
	ttl      time.Duration
	renewed  bool
	extended bool // it was made to last for longer than ttl, once
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

// kindsOf returns the kinds of the leases of holds.
func (s *Locks) kindsOf(holds []*hold) map[leaseKind]struct{} {
	kinds := make(map[leaseKind]struct{})
	for _, h := range holds {
		// With a MaxHold the holder works properly after its last renewal, too: nothing is said of such a lease.
		kinds[leaseKind{h.ttl, h.autoRenew && s.config.maxHold == 0, h.mayOutlastTTL()}] = struct{}{}
	}
	return kinds
}

// addUnnamedLocked is unnamedLocked for one hold.
func (s *Locks) addUnnamedLocked(h *hold, now time.Time, keys map[string]string) (unnamed []*entry) {
	for i := range h.count() {
		if e := h.entries[i]; len(keys) < locktable.MaxNames && s.naming.since(now)-e.named >= namedFor {
			keys[h.keyAt(i).lockKey] = s.nameOfLocked(h.keyAt(i).key)
			unnamed = append(unnamed, e)
		}
	}
	return unnamed
}

// ofSet is the form of the keys of a semaphore's and a read-write lock's rows, after the LOCK_KEY of the lock.
var ofSet = regexp.MustCompile(`^(.+) ((?:permit|reader) (?:turn|[0-9]+))$`)

// nameOfLocked returns the name of a key: itself, or "permit 2 of render".
func (s *Locks) nameOfLocked(key string) string {
	if parts := ofSet.FindStringSubmatch(key); parts != nil {
		if e := s.entries.Get(parts[1]); e != nil && e.handle != nil {
			return parts[2] + " of " + e.handle.Key()
		}
	}
	return key
}

// stopNamingLocked has no more names written. What is being written ends with s.closing.
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
	return s.table.Process(ctx, row)
}
