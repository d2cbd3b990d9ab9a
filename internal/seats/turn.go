package seats

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/engine"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/report"
)

// The pauses of [Set.Poll].
const (
	shortestPause = 2 * time.Millisecond
	longestPause  = 100 * time.Millisecond
)

// maxTooLate is how many tries of one call may have leases that have ended before their last answers.
const maxTooLate = 2

// IsWaitedFor reports whether a caller of this process is in [Set.InTurn]. A caller that comes
// later should then wait in turn too.
func (s *Set) IsWaitedFor() bool { return s.waiting.Load() > 0 }

// InTurn waits for the turn, and then calls try again and again, with pauses, until it returns
// something else than a [sqllock.ErrNotAcquired], or waiting ends. It returns the result of try.
//
// The turn is released before InTurn returns. If its lease is lost meanwhile, InTurn waits for it
// again.
//
// ctx is the caller's context, and waiting is made from it: see [Set.Failed], which makes
// InTurn's own errors.
func (s *Set) InTurn(ctx, waiting context.Context, try func() error) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	defer s.Await(waiting)()
	for first := false; ; first = true { // a caller whose turn is lost keeps its place
		done, err := s.inOneTurn(ctx, waiting, first, try)
		if done {
			return err
		}
		if waiting.Err() != nil {
			return s.Failed(ctx, waiting, err)
		}
	}
}

// inOneTurn is InTurn until the turn is lost or waiting ends: then done is false, and err that of the
// last try.
func (s *Set) inOneTurn(ctx, waiting context.Context, first bool, try func() error) (done bool, err error) {
	turn := new(engine.Use)
	if err := s.locks.Lock(report.Seats(waiting, s.key, s.prefix), s.inTurn.InTurns(first), Forever, turn, nil); err != nil {
		return true, s.Failed(ctx, waiting, err)
	}
	// If the turn cannot be released, it expires. The caller need not know.
	defer func() { _ = turn.Unlock(waiting, time.Now().Add(releaseTimeout)) }()
	return s.Poll(turn.Context(), longestPause, try) //nolint:contextcheck // it is made from waiting
}

// AcquireInTurn is InTurn for a try that acquires. It returns the lease if that lasts, also after the
// turn was released, which takes a quarter of the lease at most. A try whose lease has ended before its last
// answer is made again, a few times.
func (s *Set) AcquireInTurn(ctx, waiting context.Context, try func() (*sqllock.Lease, error)) (lease *sqllock.Lease, err error) {
	returned := false
	releasing, cancel := context.WithCancel(waiting) // of the turn: what is left of that goes on in the background
	defer cancel()
	limit := time.AfterFunc(math.MaxInt64, cancel)
	defer limit.Stop()
	defer func() {
		if !returned && lease != nil { // an observer of the turn's release has panicked
			Release(waiting, lease)
		}
	}()
	tooLate := 0
	err = s.InTurn(ctx, releasing, func() (err error) {
		lease, err = try()
		switch {
		case err == nil:
			limit.Reset(time.Until(lease.Deadline()) / 4)
		case errors.Is(err, errTooLate) && tooLate < maxTooLate:
			tooLate++
			return s.NotAcquired(ctx, sqllock.Row{})
		}
		return err
	})
	returned = true
	if err != nil {
		return nil, err
	}
	return s.Alive(ctx, waiting, lease) // the release of the turn may have taken long
}

// Poll calls try until it returns something else than a [sqllock.ErrNotAcquired]: then done is true,
// and err what it returned. If ctx ends first, done is false, and err that of the last try. The
// pauses between the calls grow, up to longest at most. They end early when a lease of this set ends
// in this process.
func (s *Set) Poll(ctx context.Context, longest time.Duration, try func() error) (done bool, err error) {
	longest = min(longest, longestPause)
	shortest := min(longest, shortestPause)
	for pause := shortest; ; pause = min(2*pause, longest) {
		if err = try(); !isHeld(err) {
			return true, err
		}
		switch woken, ok := s.sleep(ctx, pause); {
		case !ok:
			return false, err
		case woken:
			pause = shortest / 2 // the next is the shortest again
		}
	}
}

// sleep waits for about d, or until a lease of the set ends in this process: then woken is true. ok
// is false if ctx ends.
func (s *Set) sleep(ctx context.Context, d time.Duration) (woken, ok bool) {
	timer := time.NewTimer(d/2 + jitter.N(d/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, ctx.Err() == nil
	case <-s.freed:
		return true, ctx.Err() == nil
	case <-ctx.Done():
		return false, false
	}
}

// TryLock makes a single try to lock all of the keys, by one lease on these terms. The lease
// is made from ctx. The try ends when waiting does, which is made from ctx, too.
func (s *Set) TryLock(ctx, waiting context.Context, t Terms, keys ...string) (*sqllock.Lease, error) {
	lock, err := s.registry.ObtainAll(keys...)
	if err != nil {
		return nil, err
	}
	s.memory.try(keys)
	returned := false
	defer func() {
		if !returned { // an observer has panicked
			s.memory.tried(keys, nil)
		}
	}()
	limited, cancel := context.WithCancelCause(report.Seats(ctx, s.key, s.prefix))
	goOn := context.AfterFunc(waiting, func() { cancel(context.Cause(waiting)) })
	lease, err := t.Apply(lock).WithFair(false).TryLock(limited) // who comes first is decided by the turn
	returned = true
	if err != nil {
		goOn()
		cancel(nil)
		s.memory.tried(keys, nil)
		return nil, err
	}
	s.memory.tried(keys, lease)
	context.AfterFunc(lease.Context(), func() { //nolint:contextcheck // it is made from ctx
		cancel(nil)
		s.memory.ended(lease.Context(), keys)
		s.wake()
	})
	if !goOn() {
		Release(waiting, lease)
		return nil, s.NotAcquired(ctx, sqllock.Row{})
	}
	return lease, nil
}

// TakeOver acquires the rows of keys, whose leases have ended, and releases them. It returns
// [sqllock.ErrNotAcquired] if it cannot: then a row is held again, or a transaction has it pinned, which
// the lease has guarded (see [sqllock.Lease.Guard]). Until that transaction has ended, a caller must
// not act as if the lease were over.
func (s *Set) TakeOver(ctx, waiting context.Context, t Terms, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	lease, err := s.TryLock(ctx, waiting, t, keys...)
	if err != nil {
		return err
	}
	err = release(waiting, lease)
	if errors.Is(err, sqllock.ErrLockLost) {
		return s.NotAcquired(ctx, sqllock.Row{}) // another may have the rows now
	}
	return err
}
