package sqllock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/lru"
)

// locks are the locks of a [Registry], as its handles need them: what is set for all of
// them, the entries of their keys, the callers that wait, the holds, and the renewal.
//
// No other mutex is taken while mu is held, except that of the renewal.
type locks struct {
	config  holdConfig
	table   *locktable.Table
	idle    time.Duration // between two polls at most
	waker   Waker         // or nil
	renewal renewal

	waitThroughOutages bool      // waiters try again after errors of the database
	observers          observers // of acquisitions and of the ends of leases

	closing context.Context // done, with cause ErrClosed, once Close is called
	close   context.CancelCauseFunc
	calls   sync.WaitGroup // of callers that were added and have not returned

	mu      sync.Mutex
	entries *lru.Cache[string, entry]         // by LOCK_KEY
	arrived uint64                            // how many callers have waited
	waiting map[*hold]context.CancelCauseFunc // with what ends the wait
	holds   map[*hold]struct{}
}

// entryLocked returns the entry of a LOCK_KEY, which key is mapped to.
func (s *locks) entryLocked(key, lockKey string) (*entry, error) {
	if s.closing.Err() != nil {
		return nil, fmt.Errorf("%w: %q", ErrClosed, key)
	}
	if e := s.entries.Get(lockKey); e != nil {
		return e, nil
	}
	e := s.entries.Add(lockKey)
	if e == nil {
		return nil, fmt.Errorf("%w: no room for %q beside %d locks in use", ErrCapacity, key, s.entries.Capacity())
	}
	return e, nil
}

// addWaiter gives h, whose caller is about to wait, the entry of its key, which stays
// cached meanwhile. giveUp is called if the wait is to end before addHold or removeWaiter
// is called. The caller calls s.calls.Done when nothing is left of the call.
func (s *locks) addWaiter(h *hold, giveUp context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.pinLocked(h); err != nil {
		return err
	}
	s.arrived++
	h.arrived = s.arrived
	s.waiting[h] = giveUp
	s.calls.Add(1)
	return nil
}

// pinLocked gives h the entries of its keys, which stay cached until unpinLocked.
func (s *locks) pinLocked(h *hold) error {
	for i := range h.count() {
		one := h.keyAt(i)
		e, err := s.entryLocked(one.key, one.lockKey)
		if err != nil {
			s.unpinLocked(h)
			return err
		}
		s.entries.Pin(one.lockKey)
		if h.entry == nil {
			h.entry = e
		} else {
			h.more = append(h.more, e)
		}
	}
	return nil
}

// unpinLocked takes back the pins of the entries that h has.
func (s *locks) unpinLocked(h *hold) {
	pinned := len(h.more)
	if h.entry != nil {
		pinned++
	}
	for i := range pinned {
		s.entries.Unpin(h.keyAt(i).lockKey)
	}
}

// removeWaiter takes back what addWaiter did, for a hold that did not get the lock.
func (s *locks) removeWaiter(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, h)
	s.unpinLocked(h)
}

// addHold makes a waiter one of the holds that Close ends. It returns false if the
// registry is closed.
func (s *locks) addHold(h *hold) bool {
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
func (s *locks) removeHold(h *hold) {
	if h.autoRenew {
		s.renewal.remove(h)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
	s.unpinLocked(h)
}

// allHolds returns the holds, in no particular order. Some may be over.
func (s *locks) allHolds() []*hold {
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

// waitersByKey returns how many callers wait for each key.
func (s *locks) waitersByKey() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiters := make(map[string]int)
	for h := range s.waiting {
		for _, key := range h.keys() {
			waiters[key]++
		}
	}
	return waiters
}

// giveUpsLocked returns what ends the waits of some callers, in the order of their arrival, so
// that a simulation can repeat it.
func (s *locks) giveUpsLocked(some func(*hold) bool) []context.CancelCauseFunc {
	var waiters []*hold
	for h := range s.waiting {
		if some(h) {
			waiters = append(waiters, h)
		}
	}
	slices.SortFunc(waiters, func(a, b *hold) int { return cmp.Compare(a.arrived, b.arrived) })
	giveUps := make([]context.CancelCauseFunc, len(waiters))
	for i, h := range waiters {
		giveUps[i] = s.waiting[h]
	}
	return giveUps
}

// A sharedError ends the wait of a caller because the database did not answer the caller
// before it in the queue.
type sharedError struct{ err error }

func (e *sharedError) Error() string { return e.err.Error() }
func (e *sharedError) Unwrap() error { return e.err }

// shareNoAnswer ends the wait of the callers that queue behind h with err, if err says
// that the database does not answer. Otherwise each would find out for itself, one after
// the other, after seconds each. Waiters that wait through outages go on.
func (s *locks) shareNoAnswer(h *hold, err error) {
	if s.waitThroughOutages || !isNoAnswer(err) || h.waiters() == 0 {
		return
	}
	s.mu.Lock()
	giveUps := s.giveUpsLocked(func(other *hold) bool { return other != h && other.meets(h) })
	s.mu.Unlock()
	for _, giveUp := range giveUps { // without s.mu: it calls the context that the waiter came with
		giveUp(&sharedError{err})
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
