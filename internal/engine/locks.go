package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/lru"
	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/observe"
)

// Locks are the locks of a registry, as its handles need them: what is set for all of
// them, the local locks of their keys, the callers that wait, the holds, and the renewal.
//
// No other mutex is taken while mu is held.
type Locks struct {
	table     *locktable.Table
	waker     waker // or nil
	heldError heldError
	began     time.Time     // when the registry was made
	idle      time.Duration // IdleBetweenTries: between two polls at most, here and in other processes
	leastTTL  time.Duration // the shortest one that a lease can have
	fixedTTL  time.Duration // the only one that a lease can have, or 0
	maxHold   time.Duration // after which only its caller makes a lease last longer, or 0
	handOff   bool          // Unlock hands the row over to the next local waiter

	background background // what runs beside the callers
	renewers   renewers   // of the holds that are renewed automatically
	naming     naming

	defaults           Request          // of a handle, without a key
	waitThroughOutages bool             // waiters try again after errors of the database
	observers          report.Observers // of acquisitions and of the ends of leases
	tracker            *report.Tracker

	closing context.Context // done, with cause failure.ErrClosed, once Close is called
	close   context.CancelCauseFunc
	calls   sync.WaitGroup // of callers that were added and have not returned

	mu      sync.Mutex
	locals  *lru.Cache[string, localLock]     // by LOCK_KEY
	arrived uint64                            // how many callers have waited
	waiting map[*hold]context.CancelCauseFunc // with what ends the wait
	holds   map[*hold]struct{}
	sweeper sweeper

	tidying atomic.Bool // whether tidy runs
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

// heldError makes the error of a call that has found key held. holder has it for the time left, as far as that is known, and
// process is what the holder's process calls itself, or "". pin is the transaction that has the row of a lease locked that is
// over. cause is what has ended the wait, or nil.
type heldError = func(key, holder string, left, waited time.Duration, process string, pin locktable.Pin, cause error) error

// New returns the locks of a registry over a table. wake and tracker may be nil. process is what this process calls itself;
// if it is "", no names are written. The observers are not nil, and each is there once.
func New(t *locktable.Table, wake waker, held heldError, process string, observed []*observe.Observer, tracker *report.Tracker, o Settings) *Locks {
	all := report.Observers(observed)
	s := &Locks{
		table:     t,
		waker:     wake,
		heldError: held,
		began:     time.Now(),
		idle:      o.IdleBetweenTries,
		leastTTL:  max(t.LeastTTL(), minTTL),
		maxHold:   o.MaxHold,
		handOff:   o.HandOff,
		defaults:  o.Defaults,
		tracker:   tracker,
		locals:    lru.New[string, localLock](o.CacheCapacity),
		waiting:   make(map[*hold]context.CancelCauseFunc),
		holds:     make(map[*hold]struct{}),
	}
	s.waitThroughOutages, s.observers = o.WaitThroughOutages, all.OfLocks()
	if len(s.observers) > 0 {
		t.KeepValues()
	}
	s.closing, s.close = context.WithCancelCause(context.Background())
	if t.Layout() == dialect.Spring6 {
		s.fixedTTL = o.Defaults.ttl
	}
	s.background.closing = s.closing
	s.renewers = renewers{
		locks: s, background: &s.background, batch: t.Renewals.MaxRenewals(),
		observers: all.OfRenewals(), byTTL: make(map[time.Duration]*renewer),
	}
	s.naming = naming{process: process, notice: notice{table: t}}
	return s
}

// A handle is what users have of a lock, with the key as they wrote it.
type handle interface{ Key() string }

// Obtain returns the handle of the lock of key: the cached one, or what newHandle makes of a request for the key.
// Another spelling of the key has another handle, which is not cached.
func (s *Locks) Obtain(key, lockKey string, newHandle func(Request) interface{ Key() string }) (interface{ Key() string }, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.localLocked(key, lockKey)
	if err != nil {
		return nil, err
	}
	if l.handle != nil && l.handle.Key() == key {
		return l.handle, nil
	}
	made := newHandle(s.defaults.withKey(key, lockKey))
	if l.handle == nil {
		l.handle = made
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
	return s.locals.EvictUnusedSince(before)
}

// SetCapacity changes how many locks are kept that are not in use.
func (s *Locks) SetCapacity(capacity int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locals.SetCapacity(capacity)
}

// Held calls yield with each lease that is held now; with each of its keys if it has several. waiting is how many callers
// wait for the lock.
func (s *Locks) Held(yield func(key, holder string, token int64, deadline time.Time, waiting int)) {
	for _, h := range s.allHolds() {
		if !h.lease.lasts() {
			continue // it has just ended, or was handed over
		}
		end := h.lease.deadline()
		for i, one := range h.keys {
			yield(one.key, h.term.holder, h.term.token, end, h.locals[i].mutex.Waiters())
		}
	}
}

// IsLeftover reports whether the row of a holder has none any more: see [locktable.Table.Leftovers].
func (s *Locks) IsLeftover(lockKey, holder string) bool {
	return s.table.Leftovers.Includes(locktable.Row{LockKey: lockKey, Holder: holder})
}

// localLocked returns the local lock of a LOCK_KEY, which key is mapped to.
func (s *Locks) localLocked(key, lockKey string) (*localLock, error) {
	if s.closing.Err() != nil {
		return nil, fmt.Errorf("%w: %q", failure.ErrClosed, key)
	}
	if l := s.locals.Get(lockKey); l != nil {
		return l, nil
	}
	l := s.locals.Add(lockKey)
	if l == nil {
		return nil, fmt.Errorf("%w: no room for %q beside %d locks in use", failure.ErrCapacity, key, s.locals.Capacity())
	}
	return l, nil
}

// addWaiter gives h, whose caller is about to wait, the local lock of its key, which stays
// cached meanwhile. cancel is called if the wait is to end before addHold or removeWaiter
// is called. The caller calls s.calls.Done when nothing is left of the call.
func (s *Locks) addWaiter(h *hold, cancel context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		return fmt.Errorf("%w: %q", failure.ErrClosed, h.keys[0].key)
	}
	if err := s.retainLocalsLocked(h); err != nil {
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

// retainLocalsLocked gives h the local locks of its keys, which stay cached until dropLocalsLocked.
func (s *Locks) retainLocalsLocked(h *hold) error {
	h.locals = slices.Grow(h.local[:0], len(h.keys))
	for _, one := range h.keys {
		l := s.locals.Retain(one.lockKey)
		if l == nil {
			added, err := s.localLocked(one.key, one.lockKey)
			if err != nil {
				s.dropLocalsLocked(h)
				return err
			}
			s.locals.Retain(one.lockKey)
			l = added
		}
		h.locals = append(h.locals, l)
	}
	return nil
}

// dropLocalsLocked lets the local locks that h has be evicted.
func (s *Locks) dropLocalsLocked(h *hold) {
	for _, one := range h.keys[:len(h.locals)] {
		s.locals.Drop(one.lockKey)
	}
}

// removeWaiter takes back what addWaiter did, for a hold that did not get the lock.
func (s *Locks) removeWaiter(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, h)
	s.dropLocalsLocked(h)
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
		one := s.renewers.byTTL[h.ttl]
		if one == nil {
			one = s.renewers.startLocked(h.ttl)
		}
		one.holds[h] = struct{}{}
	}
	return true
}

// removeHold takes h from the holds, and lets its local locks be evicted if nothing else uses them.
func (s *Locks) removeHold(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
	if one := s.renewers.byTTL[h.ttl]; one != nil {
		delete(one.holds, h)
	}
	s.dropLocalsLocked(h)
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
	slices.SortFunc(holds, func(a, b *hold) int { return strings.Compare(a.keys[0].lockKey, b.keys[0].lockKey) })
	return holds
}

// Waiting returns how many callers wait for each key: one may wait for several.
func (s *Locks) Waiting() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	byKey := make(map[string]int)
	for h := range s.waiting {
		for _, one := range h.keys {
			byKey[one.key]++
		}
	}
	return byKey
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
// the other, after seconds each. Waiters that wait through outages go on. So do those for a key that h does not own now, as a
// joint lock that polls another one: they do not wait for h, and may have a lease already.
func (s *Locks) shareNoAnswer(h *hold, err error) {
	if s.waitThroughOutages || !dbcall.Is(err, dbcall.NoAnswer) || h.waiters() == 0 {
		return
	}
	owned := h.ownedKeys()
	s.mu.Lock()
	cancels := s.cancelsLocked(func(other *hold) bool { return other != h && slices.ContainsFunc(owned, other.covers) })
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
