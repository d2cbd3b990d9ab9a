package registry_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// An action is one thing that a caller does. It returns the lease that is held afterwards, if any.
type action struct {
	name string
	// prepare runs while all is well; its lease is passed to do.
	prepare func(*fixture) *sqllock.Lease
	do      func(context.Context, *fixture, *sqllock.Lease) (*sqllock.Lease, error)
}

// heldFor is held with a minimum hold, which has passed.
func heldFor(s *fixture) *sqllock.Lease {
	s.Helper()
	lease := check.Value(s.lock.WithMinHold(time.Millisecond).TryLock(s.Context()))(s.T)
	time.Sleep(time.Millisecond)
	return lease
}

func free(*fixture) *sqllock.Lease { return nil }

// joint has the actions that follow, and settle, lock several keys.
func joint(prepare func(*fixture) *sqllock.Lease) func(*fixture) *sqllock.Lease {
	return func(s *fixture) *sqllock.Lease {
		s.Helper()
		s.lock = obtainAll(s.T, s.registry, "j", "k", "l")
		return prepare(s)
	}
}

// taken has another client hold the lock for as long as a waiter looks a few times.
func taken(s *fixture) *sqllock.Lease {
	s.Helper()
	must(s.T, check.ErrorOf(s.repository.Acquire(s.Context(), "k", s.repository.NewHolder(), 20*time.Millisecond)))
	return nil
}

// users is what an error of the user's own statement counts as.
func users(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, sqllock.ErrDatabase, ctx.Err())
}

var actions = []action{
	{"ExecuteLockedTx", free, func(ctx context.Context, s *fixture, _ *sqllock.Lease) (*sqllock.Lease, error) {
		return nil, s.registry.ExecuteLockedTx(ctx, "k", s.pool.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM INT_LOCK WHERE REGION = 'elsewhere'")
			return users(ctx, err)
		})
	}},
	{"Guard", held, func(ctx context.Context, s *fixture, lease *sqllock.Lease) (*sqllock.Lease, error) {
		tx, err := s.pool.BeginTxx(ctx, nil)
		if err != nil {
			return lease, users(ctx, err)
		}
		defer func() { _ = tx.Rollback() }()
		if err := lease.Guard(ctx, tx); err != nil {
			return lease, err
		}
		return lease, users(ctx, tx.Commit())
	}},
	{"TryLock", free, func(ctx context.Context, s *fixture, _ *sqllock.Lease) (*sqllock.Lease, error) {
		return s.lock.TryLock(ctx)
	}},
	{"Lock", taken, func(ctx context.Context, s *fixture, _ *sqllock.Lease) (*sqllock.Lease, error) {
		return s.lock.Lock(ctx)
	}},
	{"Reenter", held, func(ctx context.Context, s *fixture, outer *sqllock.Lease) (*sqllock.Lease, error) {
		inside, stop := context.WithCancel(outer.Context())
		defer context.AfterFunc(ctx, stop)()
		inner, err := s.lock.Lock(inside)
		switch {
		case err == nil:
			must(s.T, inner.Unlock(s.Context()))
		case inside.Err() != nil:
			is(s.T, err, sqllock.ErrNotAcquired)
		}
		return outer, err
	}},
	{"Renew", held, func(ctx context.Context, _ *fixture, lease *sqllock.Lease) (*sqllock.Lease, error) {
		return lease, lease.Renew(ctx)
	}},
	{"Unlock", held, func(ctx context.Context, _ *fixture, lease *sqllock.Lease) (*sqllock.Lease, error) {
		return nil, lease.Unlock(ctx)
	}},
	{"UnlockWithAMinimumHold", heldFor, func(ctx context.Context, _ *fixture, lease *sqllock.Lease) (*sqllock.Lease, error) {
		return nil, lease.Unlock(ctx)
	}},
	{"ExecuteLocked", free, func(ctx context.Context, s *fixture, _ *sqllock.Lease) (*sqllock.Lease, error) {
		return nil, s.registry.ExecuteLocked(ctx, "k", nothing)
	}},
	{"TryLockOfAJointLock", joint(free), func(ctx context.Context, s *fixture, _ *sqllock.Lease) (*sqllock.Lease, error) {
		return s.lock.TryLock(ctx)
	}},
	{"LockOfAJointLock", joint(taken), func(ctx context.Context, s *fixture, _ *sqllock.Lease) (*sqllock.Lease, error) {
		return s.lock.Lock(ctx)
	}},
	{"RenewOfAJointLock", joint(held), func(ctx context.Context, _ *fixture, lease *sqllock.Lease) (*sqllock.Lease, error) {
		return lease, lease.Renew(ctx)
	}},
	{"UnlockOfAJointLock", joint(held), func(ctx context.Context, _ *fixture, lease *sqllock.Lease) (*sqllock.Lease, error) {
		return nil, lease.Unlock(ctx)
	}},
	{"UnlockOfAJointLockWithAMinimumHold", joint(heldFor), func(ctx context.Context, _ *fixture, lease *sqllock.Lease) (*sqllock.Lease, error) {
		return nil, lease.Unlock(ctx)
	}},
	{"DeleteExpired", free, func(ctx context.Context, s *fixture, _ *sqllock.Lease) (*sqllock.Lease, error) {
		_, err := s.registry.DeleteExpired(ctx)
		return nil, err
	}},
}

// mostOps is more operations than any action needs with one fault in it. A loop that spins exceeds it.
const mostOps = 60

// short is the time-to-live of what everyMoment locks: a writer polls for as long as the row of a lost reader lasts.
const short = 10 * time.Second

// everyMoment runs a test for every action, isolation, and moment of the action, up to the first one that the action
// does not reach. Each has a database of its own, which takes seconds together. The statements of locks of several
// rows are those of the others, so they are sent in one isolation.
func everyMoment(t *testing.T, test func(s *fixture, a action, n int, done bool) (reached bool)) {
	t.Helper()
	check.Long(t)
	run := func(a action, isolations []sqllock.Isolation, most int) {
		t.Helper()
		for _, isolation := range isolations {
			runInBubble(t, fmt.Sprintf("%s/%v", a.name, isolation), func(t *testing.T) {
				s := newFixture(t, isolation)
				s.ttl = short
				reached := true
				for n := 1; n <= most && reached; n++ {
					for _, done := range []bool{false, true} {
						t.Logf("operation %d, done: %v", n, done)
						reached = test(s.another(isolation), a, n, done)
						if n == 1 && !reached {
							t.Errorf("the action sent nothing, or the test had no effect")
						}
						time.Sleep(short) // until what was left behind has ended
					}
				}
			})
		}
	}
	for _, a := range actions {
		run(a, []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit}, 8)
	}
	for _, a := range ofSeats {
		run(a, []sqllock.Isolation{sqllock.Serializable}, 40)
	}
}

// TestAFaultAtEveryMoment has the database fail once, before or after each operation.
func TestAFaultAtEveryMoment(t *testing.T) {
	t.Parallel()
	everyMoment(t, func(s *fixture, a action, n int, done bool) bool {
		lease := a.prepare(s)
		var failed bool
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.N == n && m.Done == done {
				failed = true
				return errGone
			}
			return nil
		})
		lease, err := a.do(s.Context(), s, lease)
		if s.whole != nil && err == nil {
			must(s.T, lease.Context().Err())
		}
		s.settle(lease, err)
		if !failed && err != nil {
			s.Errorf("%v without a fault", err)
		}
		if err != nil && (!errors.Is(err, sqllock.ErrDatabase) || !errors.Is(err, errGone) || errors.Is(err, sqllock.ErrNotAcquired)) {
			s.Errorf("error %v", err)
		}
		return failed
	})
}

// TestAnOutageFromEveryMomentOn has the database go away at one moment and come back when the caller has its error.
func TestAnOutageFromEveryMomentOn(t *testing.T) {
	t.Parallel()
	everyMoment(t, func(s *fixture, a action, n int, done bool) bool {
		lease := a.prepare(s)
		var away atomic.Bool
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.N > n || m.N == n && m.Done == done {
				away.Store(true)
				return errGone
			}
			return nil
		})
		lease, err := a.do(s.Context(), s, lease)
		s.settle(lease, err)
		if err != nil && !errors.Is(err, sqllock.ErrDatabase) {
			s.Errorf("error %v", err)
		}
		return away.Load()
	})
}

// TestACancellationAtEveryMoment has the caller's context end before or after each operation.
func TestACancellationAtEveryMoment(t *testing.T) {
	t.Parallel()
	everyMoment(t, func(s *fixture, a action, n int, done bool) bool {
		lease := a.prepare(s)
		ctx, cancel := context.WithCancelCause(s.Context())
		defer cancel(nil)
		s.connector.Follow(func(own context.Context, m flaky.Moment) error {
			if m.N == n && m.Done == done {
				cancel(errStop)
				if s.whole == nil {
					for range 100 { // until what only follows ctx has ended, too; database/sql may have a mutex, so no sleep would end
						runtime.Gosched()
					}
					return own.Err() // no more than that, as pgx
				}
			}
			return nil
		})
		lease, err := a.do(ctx, s, lease)
		if s.whole != nil {
			s.isCancelled(ctx, lease, err)
		}
		s.settle(lease, err)
		if err != nil && !errors.Is(err, context.Canceled) {
			s.Errorf("error %v", err)
		}
		return ctx.Err() != nil
	})
}

// isCancelled checks what an action of several rows has returned: that it was cancelled, and why, or a lease of the
// context.
func (s *fixture) isCancelled(ctx context.Context, lease *sqllock.Lease, err error) {
	s.Helper()
	if err == nil {
		is(s.T, lease.Context().Err(), ctx.Err())
		return
	}
	is(s.T, err, sqllock.ErrNotAcquired)
	is(s.T, err, errStop)
	if lease == nil {
		s.hasNoLease() //nolint:contextcheck // ctx has ended
	}
}

// late is for how long a statement may be on its way whose caller has left, until its row is deleted.
const late = 2 * time.Second

// hasNoLease checks that there is no row but those that have expired, soon after a call has ended.
func (s *fixture) hasNoLease() {
	s.Helper()
	time.Sleep(late)
	rows := check.Value(s.repository.List(s.Context()))(s.T)
	if slices.ContainsFunc(rows, func(row sqllock.Row) bool { return !row.Expired() }) {
		s.Errorf("left behind: %+v", rows)
	}
}

// settle checks what must be true however an action ended: it has not spun, and once the database is well the same
// process gets the lock again, long before the time-to-live ends.
func (s *fixture) settle(lease *sqllock.Lease, err error) {
	s.Helper()
	if n := s.connector.Count(); n > mostOps {
		s.Errorf("%d operations", n)
	}
	s.connector.Follow(nil)
	if lease != nil {
		if unlockErr := lease.Unlock(s.Context()); unlockErr != nil {
			s.Errorf("unlock: %v, after %v", unlockErr, err)
		}
	}
	if n := s.registry.Held(); len(n) > 0 {
		s.Errorf("it still holds %+v, after %v", n, err)
	}
	again, tryErr := s.again()
	if tryErr != nil {
		s.Fatalf("cannot lock again: %v, after %v", tryErr, err)
	}
	must(s.T, again.Unlock(s.Context()))
	if s.whole != nil {
		time.Sleep(late) // of several rows, one may have been acquired for a caller that has left
	}
	rows, listErr := s.repository.List(s.Context())
	must(s.T, listErr)
	if len(rows) != 0 {
		s.Errorf("left behind: %+v, after %v", rows, err)
	}
}

// again returns the lease of the lock in the process that has done an action. A seat that could not be released is
// taken until its time-to-live ends.
func (s *fixture) again() (*sqllock.Lease, error) {
	if s.whole == nil {
		return s.lock.TryLockFor(s.Context(), short/2)
	}
	began := time.Now()
	lease, err := s.whole(s.Context())
	check.Takes(s, "to lock again", began, 0, 2*short)
	_, expired := s.registry.DeleteExpired(s.Context())
	return lease, errors.Join(err, expired)
}
