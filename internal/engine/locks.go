package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/lru"
	"github.com/sqllock/sqllock/internal/waits"
	"github.com/sqllock/sqllock/observe"
)

// Locks are the locks of a registry, as its handles need them: what is set for all of
// them, the entries of their keys, the callers that wait, the holds, and the renewal.
//
// No other mutex is taken while mu is held, except that of the renewal.
type Locks struct {
	config holdConfig
	table  *locktable.Table
	idle   time.Duration // between two polls at most
	waker  waker         // or nil
	// heldError makes the error of a call that has found key held.
	heldError heldError
	renewal   renewal
	naming    naming

	defaults           Request   // of a handle, without a key
	waitThroughOutages bool      // waiters try again after errors of the database
	observers          observers // of acquisitions and of the ends of leases
	waits              *waits.Tracker

	closing context.Context // done, with cause failure.ErrClosed, once Close is called
	close   context.CancelCauseFunc
	calls   sync.WaitGroup // of callers that were added and have not returned

	mu      sync.Mutex
	entries *lru.Cache[string, entry]         // by LOCK_KEY
	arrived uint64                            // how many callers have waited
	waiting map[*hold]context.CancelCauseFunc // with what ends the wait
	holds   map[*hold]struct{}
	sweeper sweeper
}

// Settings are those of a registry. Package sqllock documents them.
type Settings struct {
	Defaults           Request       // of a handle: its settings, without a key
	MaxHold            time.Duration // or 0
	IdleBetweenTries   time.Duration
	HandOff            bool
	WaitThroughOutages bool
	CacheCapacity      int
}

// heldError makes the error of a call that has found key held: by holder, for another left, as far as that is known. pin is
// the transaction that keeps the row of a lease that is over from being acquired.
// process is what the holder's process calls itself, or "". cause is what has ended the wait, or nil.
type heldError = func(key, holder string, left, waited time.Duration, process string, pin locktable.Pin, cause error) error

// New returns the locks of a registry over a table. wake and tracker may be nil. process is what this process calls itself;
// if it is "", no names are written. The observers are not nil, and each is there once.
func New(t *locktable.Table, wake waker, held heldError, process string, observed []*observe.Observer, tracker *waits.Tracker, o Settings) *Locks {
	all := observers(observed)
	s := &Locks{
		table:     t,
		idle:      o.IdleBetweenTries,
		waker:     wake,
		heldError: held,
		defaults:  o.Defaults,
		waits:     tracker,
		entries:   lru.New[string, entry](o.CacheCapacity),
		waiting:   make(map[*hold]context.CancelCauseFunc),
		holds:     make(map[*hold]struct{}),
	}
	s.waitThroughOutages, s.observers = o.WaitThroughOutages, all.ofLocks()
	if len(s.observers) > 0 {
		t.KeepValues()
	}
	s.closing, s.close = context.WithCancelCause(context.Background())
	s.config = holdConfig{table: t, onEnd: s.removeHold, onKept: s.nameKept, onLeftover: s.sweepLater, handOff: o.HandOff, idle: o.IdleBetweenTries, maxHold: o.MaxHold}
	s.config.leastTTL = max(t.LeastTTL(), minTTL)
	if t.Layout() == dialect.Spring6 {
		s.config.fixedTTL = o.Defaults.ttl
	}
	s.renewal = renewal{
		background: background{closing: s.closing}, table: t, batch: locktable.MaxRenewals,
		observers: all.ofRenewals(), renewers: make(map[time.Duration]*renewer),
	}
	s.config.renewOverdue = s.renewal.renewOverdue
	s.naming = newNaming(s.closing, process)
	return s
}

// A handle is what users have of a lock, with the key as they wrote it.
type handle interface{ Key() string }

// Obtain returns the handle of the lock of key: the cached one, or what newHandle makes of a request for the key.
// Another spelling of the key has another handle, which is not cached.
func (s *Locks) Obtain(key, lockKey string, newHandle func(Request) interface{ Key() string }) (interface{ Key() string }, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.entryLocked(key, lockKey)
	if err != nil {
		return nil, err
	}
	if e.handle != nil && e.handle.Key() == key {
		return e.handle, nil
	}
	r := s.defaults
	r.key, r.lockKey = key, lockKey
	made := newHandle(r)
	if e.handle == nil {
		e.handle = made
	}
	return made, nil
}

// Request returns a request for keys, which map to lockKeys. Those that map to one LOCK_KEY count once.
func (s *Locks) Request(keys, lockKeys []string) Request { return s.defaults.withKeys(keys, lockKeys) }

// CheckOpen returns ErrClosed once Close was called.
func (s *Locks) CheckOpen() error {
	if s.closing.Err() != nil {
		return failure.ErrClosed
	}
	return nil
}

// Forget forgets the locks that are not in use and were last used before an instant, and returns how many there were.
func (s *Locks) Forget(before time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries.EvictUnusedSince(before)
}

// SetCapacity changes how many locks are kept that are not in use.
func (s *Locks) SetCapacity(capacity int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries.SetCapacity(capacity)
}

// Held calls yield with each lease that is held now; with each of its keys if it has several. waiting is how many callers
// wait for the lock.
func (s *Locks) Held(yield func(key, holder string, token int64, deadline time.Time, waiting int)) {
	for _, h := range s.allHolds() {
		if !h.lasts() {
			continue // it has just ended, or was handed over
		}
		t := h.currentTerm()
		for i := range h.count() {
			yield(h.keyAt(i).key, t.holder, t.token, t.end, h.entries[i].mutex.Waiters())
		}
	}
}

// IsLeftover reports whether the row of a holder has none any more: see [locktable.Table.IsLeftover].
func (s *Locks) IsLeftover(lockKey, holder string) bool {
	return s.table.IsLeftover(locktable.Row{LockKey: lockKey, Holder: holder})
}

// entryLocked returns the entry of a LOCK_KEY, which key is mapped to.
func (s *Locks) entryLocked(key, lockKey string) (*entry, error) {
	if s.closing.Err() != nil {
		return nil, fmt.Errorf("%w: %q", failure.ErrClosed, key)
	}
	if e := s.entries.Get(lockKey); e != nil {
		return e, nil
	}
	e := s.entries.Add(lockKey)
	if e == nil {
		return nil, fmt.Errorf("%w: no room for %q beside %d locks in use", failure.ErrCapacity, key, s.entries.Capacity())
	}
	return e, nil
}

// addWaiter gives h, whose caller is about to wait, the entry of its key, which stays
// cached meanwhile. cancel is called if the wait is to end before addHold or removeWaiter
// is called. The caller calls s.calls.Done when nothing is left of the call.
func (s *Locks) addWaiter(h *hold, cancel context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		return fmt.Errorf("%w: %q", failure.ErrClosed, h.keyAt(0).key)
	}
	if err := s.pinLocked(h); err != nil {
		return err
	}
	s.arrived++
	h.arrived = s.arrived
	s.waiting[h] = cancel
	s.calls.Add(1)
	if s.naming.process != "" && !s.naming.running {
		s.nameLocked()
	}
	return nil
}

// pinLocked gives h the entries of its keys, which stay cached until unpinLocked.
func (s *Locks) pinLocked(h *hold) error {
	h.entries = h.entry[:0]
	if h.joint == nil {
		return s.pinOneLocked(h, h.key, h.lockKey)
	}
	h.entries = make([]*entry, 0, len(h.joint.keys))
	for _, one := range h.joint.keys {
		if err := s.pinOneLocked(h, one.key, one.lockKey); err != nil {
			s.unpinLocked(h)
			return err
		}
	}
	return nil
}

func (s *Locks) pinOneLocked(h *hold, key, lockKey string) error {
	e := s.entries.Pin(lockKey)
	if e == nil {
		added, err := s.entryLocked(key, lockKey)
		if err != nil {
			return err
		}
		s.entries.Pin(lockKey)
		e = added
	}
	h.entries = append(h.entries, e)
	return nil
}

// unpinLocked takes back the pins of the entries that h has.
func (s *Locks) unpinLocked(h *hold) {
	for i := range h.entries {
		lockKey := h.lockKey
		if i > 0 {
			lockKey = h.joint.more[i-1]
		}
		s.entries.Unpin(lockKey)
	}
}

// removeWaiter takes back what addWaiter did, for a hold that did not get the lock.
func (s *Locks) removeWaiter(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, h)
	s.unpinLocked(h)
}

// addHold makes a waiter one of the holds that Close ends. It returns false if the
// registry is closed.
func (s *Locks) addHold(h *hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, h)
	if s.closing.Err() != nil {
		return false
	}
	s.holds[h] = struct{}{}
	if h.autoRenew {
		s.renewal.add(h)
	}
	return true
}

// removeHold takes h from the holds, and its pin from the entry.
func (s *Locks) removeHold(h *hold) {
	if h.autoRenew {
		s.renewal.remove(h)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
	s.unpinLocked(h)
}

// allHolds returns the holds, in no particular order. Some may be over.
func (s *Locks) allHolds() []*hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	holds := make([]*hold, 0, len(s.holds))
	for h := range s.holds {
		holds = append(holds, h)
	}
	// In the same order each time, so that a simulation can repeat what Close does.
	slices.SortFunc(holds, func(a, b *hold) int { return strings.Compare(a.lockKey, b.lockKey) })
	return holds
}

// Waiting returns how many callers wait for each key, and how many wait: one may wait for several keys.
func (s *Locks) Waiting() (byKey map[string]int, callers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	byKey = make(map[string]int)
	for h := range s.waiting {
		for _, key := range h.Keys() {
			byKey[key]++
		}
	}
	return byKey, len(s.waiting)
}

// cancelsLocked returns what ends the waits of some callers, in the order of their arrival, so
// that a simulation can repeat it.
func (s *Locks) cancelsLocked(some func(*hold) bool) []context.CancelCauseFunc {
	var waiters []*hold
	for h := range s.waiting {
		if some(h) {
			waiters = append(waiters, h)
		}
	}
	slices.SortFunc(waiters, func(a, b *hold) int { return cmp.Compare(a.arrived, b.arrived) })
	cancels := make([]context.CancelCauseFunc, len(waiters))
	for i, h := range waiters {
		cancels[i] = s.waiting[h]
	}
	return cancels
}

// A sharedError ends the wait of a caller because the database did not answer the caller
// before it in the queue.
type sharedError struct{ err error }

func (e *sharedError) Error() string { return e.err.Error() }
func (e *sharedError) Unwrap() error { return e.err }

// shareNoAnswer ends the wait of the callers that queue behind h with err, if err says
// that the database does not answer. Otherwise each would find out for itself, one after
// the other, after seconds each. Waiters that wait through outages go on.
func (s *Locks) shareNoAnswer(h *hold, err error) {
	if s.waitThroughOutages || !locktable.Is(err, locktable.NoAnswer) || h.waiters() == 0 {
		return
	}
	s.mu.Lock()
	cancels := s.cancelsLocked(func(other *hold) bool { return other != h && other.meets(h) })
	s.mu.Unlock()
	for _, cancel := range cancels { // without s.mu: it calls the context that the waiter came with
		cancel(&sharedError{err})
	}
}

// sharedErrorOf returns the error that shareNoAnswer ended the wait of waiting with, or nil.
func sharedErrorOf(waiting context.Context) error {
	var shared *sharedError
	if errors.As(context.Cause(waiting), &shared) {
		return shared.err
	}
	return nil
}
