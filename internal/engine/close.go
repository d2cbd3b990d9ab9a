package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/observe"
)

// inFlightTimeout is how long Close waits for acquisitions that are under way: ten seconds.
func (s *Locks) inFlightTimeout() time.Duration { return 2 * s.table.BatchTimeout() }

// keptAtOnce is how many rows with a minimum hold Close waits for at a time that a transaction has pinned.
const keptAtOnce = 4

// Close ends all waits and all leases, and releases their rows.
func (s *Locks) Close(ctx context.Context) error {
	s.endWaiting()
	var ended, kept []*hold
	for _, h := range s.allHolds() {
		if h.finish(observe.EndClosed, nil) {
			ended = append(ended, h)
		}
	}
	waiting := make(chan error, 1)
	go func() { waiting <- s.waitInFlight(ctx) }()
	ended, kept = splitByMinHold(ended)
	keeping := make(chan error, 1)
	go func() { keeping <- s.keepRows(ctx, kept) }()
	left, noAnswer, err := s.releaseRows(ctx, ended, s.table.Releases.MaxReleases(), func(ctx context.Context, h *hold) error {
		_, err := s.table.Releases.Release(ctx, h.claim())
		return err
	})
	err = errors.Join(err, <-keeping)
	unfinished := <-waiting
	err = errors.Join(err, unfinished)
	if !noAnswer && unfinished == nil { // otherwise there is no answer to this either
		err = errors.Join(err, failure.Of(s.inTime(ctx, 0, s.table.Leftovers.DeleteAll), ""))
		if s.table.Leftovers.HasParked() {
			err = errors.Join(err, failure.Of(s.deleteParked(ctx, time.Now().Add(tidyAfter)), ""))
		}
		s.naming.notice.withdraw(ctx) // the timer has ended
	}
	for _, h := range left {
		s.table.Leftovers.Add(h.lastingClaim())
	}
	return err
}

// endWaiting closes the registry for new callers, and ends the wait of those that there
// are.
func (s *Locks) endWaiting() {
	s.mu.Lock() // a caller that adds a hold has seen that s is open
	s.close(failure.ErrClosed)
	s.stopNamingLocked()
	cancels := s.cancelsLocked(func(*hold) bool { return true })
	s.mu.Unlock()
	for _, cancel := range cancels { // without s.mu: it calls the context that the waiter came with
		cancel(failure.ErrClosed)
	}
}

// waitInFlight waits until all callers whose wait was ended have returned, until the renewals
// have ended, and until it is known what became of acquisitions whose callers did not wait
// for the answer.
func (s *Locks) waitInFlight(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, s.inFlightTimeout())
	defer cancel()
	_, err := bounded.Do(limited, 0, func() (struct{}, error) {
		s.calls.Wait()
		s.background.tasks.Wait()
		s.naming.writing.Wait()
		return struct{}{}, s.table.Leftovers.WaitInFlight(limited)
	}, nil)
	if err != nil {
		return failure.As(failure.ErrDatabase, "close: acquisitions under way may leave rows behind", err)
	}
	return nil
}

// splitByMinHold divides holds that are over: the rows of some have to stay for the rest of their minimum
// holds.
func splitByMinHold(holds []*hold) (ended, kept []*hold) {
	for _, h := range holds {
		if time.Until(h.lease.minHoldEnd()) > 0 {
			kept = append(kept, h)
		} else {
			ended = append(ended, h)
		}
	}
	return ended, kept
}

// keepRows leaves the rows of holds that are over for the rest of their minimum holds. One statement does
// that for those whose rests differ by less than a second. A row that it could not keep stays until its
// time-to-live ends.
func (s *Locks) keepRows(ctx context.Context, holds []*hold) error {
	slices.SortStableFunc(holds, func(a, b *hold) int { return b.lease.minHoldEnd().Compare(a.lease.minHoldEnd()) })
	var passedOver []*hold
	for first := 0; first < len(holds); {
		end := holds[first].lease.minHoldEnd()
		n := slices.IndexFunc(holds[first:], func(h *hold) bool { return end.Sub(h.lease.minHoldEnd()) >= time.Second })
		if n < 0 {
			n = len(holds) - first
		}
		for part := range byRows(holds[first:first+n], s.table.Renewals.MaxRenewals()) {
			claims := make([]locktable.Claim, len(part))
			for i, h := range part {
				claims[i] = h.claim()
			}
			var kept []bool
			err := s.inTime(ctx, part[0].ttl, func(ctx context.Context) (err error) {
				kept, err = s.table.Releases.KeepAll(ctx, claims, max(time.Until(end), time.Millisecond))
				return err
			})
			if err != nil {
				return fmt.Errorf("close: %d rows with a minimum hold stay until they expire: %w", len(holds)-first, failure.Of(err, part[0].key))
			}
			for i, h := range part {
				if !kept[i] {
					passedOver = append(passedOver, h)
				}
			}
		}
		first += n
	}
	_, _, err := s.releaseRows(ctx, passedOver, keptAtOnce, func(ctx context.Context, h *hold) error {
		_, err := s.table.Releases.Keep(ctx, h.claim(), max(time.Until(h.lease.minHoldEnd()), time.Millisecond))
		return err
	})
	return err
}

// inTime calls send, which deletes rows or keeps them, and limits it as an answer is limited: to ten seconds, or ttl if
// that is longer. Otherwise it would last for as long as other writers keep the database busy, since a statement that
// loses a race is sent again, and no lease limits it any more.
func (s *Locks) inTime(ctx context.Context, ttl time.Duration, send func(context.Context) error) error {
	limited, cancel := bounded.WithTimeout(ctx, max(s.inFlightTimeout(), ttl))
	defer cancel()
	err := send(limited)
	if e := (*dbcall.Error)(nil); errors.As(err, &e) && e.Kind == dbcall.Ended && bounded.Ended(ctx) == nil {
		return &dbcall.Error{Op: e.Op, Kind: dbcall.NoAnswer, Err: e.Err}
	}
	return err
}

// releaseRows calls release for holds that are over, for some at a time. If the database does not answer in time it
// begins no more of them, and noAnswer is true. It returns the holds whose rows may be left.
func (s *Locks) releaseRows(ctx context.Context, holds []*hold, atOnce int, release func(context.Context, *hold) error) (left []*hold, noAnswer bool, err error) {
	var stopped atomic.Bool
	outcomes := make([]error, len(holds))
	var working sync.WaitGroup
	workers := min(atOnce, len(holds))
	for first := range workers {
		working.Go(func() {
			for i := first; i < len(holds); i += workers {
				outcomes[i] = errNotTried
				if stopped.Load() {
					continue
				}
				failed := s.inTime(ctx, holds[i].ttl, func(ctx context.Context) error { return release(ctx, holds[i]) })
				outcomes[i] = failure.Of(failed, holds[i].key)
				if dbcall.Is(failed, dbcall.NoAnswer) {
					stopped.Store(true)
				}
			}
		})
	}
	working.Wait()
	notTried := 0
	for i, failed := range outcomes {
		switch {
		case failed == nil:
			continue
		case errors.Is(failed, errNotTried):
			notTried++
		default:
			err = errors.Join(err, failed)
		}
		left = append(left, holds[i])
	}
	if notTried > 0 {
		err = errors.Join(err, fmt.Errorf("%w: close: %d more rows were not deleted: %w", failure.ErrDatabase, notTried, errNotTried))
	}
	return left, stopped.Load(), err
}

// errNotTried is why Close leaves rows after the database did not answer.
var errNotTried = errors.New("the database does not answer")
