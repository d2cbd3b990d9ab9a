package semaphore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seats"
)

// An acquisition is one call that acquires.
type acquisition struct {
	*Semaphore

	ctx     context.Context //nolint:containedctx // the caller's; it lives as long as the call
	waiting context.Context //nolint:containedctx // made from it; it ends the wait
	n       int
}

// acquire acquires n permits for ctx, the caller's.
func (s *Semaphore) acquire(ctx context.Context, n int, wait time.Duration) (*sqllock.Lease, error) {
	if err := s.check(n); err != nil {
		return nil, err
	}
	waiting, cancel := seats.Limited(ctx, wait)
	defer cancel()
	a := acquisition{s, ctx, waiting, n}
	if wait == seats.NotAtAll || !s.permits.IsWaitedFor() {
		lease, err := a.first()
		if wait == seats.NotAtAll || !seats.GoesOn(waiting, err) {
			return lease, err
		}
	}
	return s.permits.AcquireInTurn(ctx, waiting, func() (*sqllock.Lease, error) { return a.attempt(inTurn) })
}

// first is the attempt of a caller that does not wait for its turn.
func (a *acquisition) first() (*sqllock.Lease, error) {
	if a.n == 1 {
		own, err := a.permits.Own(a.ctx)
		if err != nil {
			return nil, err
		}
		if lease, known, err := a.permits.TryAny(a.ctx, a.waiting, a.terms, own); known {
			return lease, err
		}
	}
	return a.attempt(outOfTurn)
}

// check refuses what no call can get.
func (s *Semaphore) check(n int) error {
	if n < 1 || n > s.most {
		return seats.Invalid("%d permits of %q, which has %d", n, s.Key(), s.most)
	}
	return s.permits.CheckTerms(s.terms)
}

// Whose turn it is when an attempt is made.
const (
	outOfTurn = false // not the caller's: it leaves the permits to the one whose turn it is
	inTurn    = true
)

// attempt acquires n of the free permits. It returns [sqllock.ErrNotAcquired] if there are fewer.
func (a *acquisition) attempt(itsTurn bool) (*sqllock.Lease, error) {
	var (
		refused error
		taken   []string // by others that were faster, or pinned by a transaction after their leases have ended
	)
	for range seats.MaxRaces {
		free, err := a.choose(itsTurn, taken)
		if refused != nil && errors.Is(err, sqllock.ErrNotAcquired) {
			return nil, a.failed(refused) // which says by whom; ctx may have ended since
		}
		if err != nil {
			return nil, err
		}
		lease, err := a.permits.TryLock(a.ctx, a.waiting, a.terms, free...)
		if err == nil {
			return lease, nil
		}
		var held *sqllock.HeldError
		if refused = a.failed(err); !errors.As(err, &held) || a.waiting.Err() != nil {
			break
		}
		taken = append(taken, held.Key)
	}
	return nil, refused
}

// failed returns the error of the call for that of one of its steps.
func (a *acquisition) failed(err error) error { return a.permits.Failed(a.ctx, a.waiting, err) }

// choose returns the keys of n free permits without those that are taken, at random, so that callers
// that choose at the same time seldom choose the same. It returns [sqllock.ErrNotAcquired] if the
// caller is not to have them.
func (a *acquisition) choose(itsTurn bool, taken []string) ([]string, error) {
	own, err := a.permits.Own(a.ctx)
	if err != nil {
		return nil, err
	}
	read, err := a.permits.Read(a.waiting)
	if err != nil {
		return nil, a.failed(err)
	}
	free := slices.DeleteFunc(read.Free(own), func(permit string) bool { return slices.Contains(taken, permit) })
	if len(free) < a.n {
		return nil, a.permits.NotAcquired(a.ctx, read.Next())
	}
	if waiter, taken := read.Turn(); taken && !itsTurn {
		return nil, a.permits.NotAcquired(a.ctx, waiter)
	}
	return free[:a.n], nil
}
