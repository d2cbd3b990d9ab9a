package semaphore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
)

// turnRow is the row of the waiter whose turn it is.
const turnRow = key + " permit turn"

// longestPoll is how long after a release in another process a waiter may notice it.
const longestPoll = 100*time.Millisecond + time.Millisecond

// TestAWaiterOfThisProcessIsWokenUp releases the permit that a caller of the same process waits for.
func TestAWaiterOfThisProcessIsWokenUp(t *testing.T) {
	inBothLayouts(t, func(f *fixture) {
		a := f.process("a", 3)
		all := f.acquires(a.WithAutoRenew(true), 3)
		w := f.starts(a, 2)
		time.Sleep(10 * ttl)
		f.waits(w)
		f.has("printers permit 0", "printers permit 1", "printers permit 2", turnRow)
		began := time.Now()
		f.Unlock(all)
		<-w.done
		f.Must(w.err)
		f.Takes("Acquire", began, 0, longestPoll/2) // more than a pause after a lost race
		if n := len(f.rows()); n != 2 {
			f.Error(f.rows())
		}
		f.Unlock(w.lease)
		f.has()
	})
}

// TestTheTurnOfADeadProcessEnds has a process die in its turn.
func TestTheTurnOfADeadProcessEnds(t *testing.T) {
	inBothLayouts(t, func(f *fixture) {
		dead := check.Value(f.registry("dead").TryLock(f.Context(), turnRow))(f)
		began := time.Now()
		b := f.process("b", 3)
		if held := f.refusal(b, 1); held.Key != key || held.Holder != dead.Holder() || held.Left != ttl {
			f.Errorf("%+v, want %s", held, dead.Holder())
		}
		if held := f.refusal(b, 3); held.Holder != dead.Holder() {
			f.Errorf("%+v, want %s", held, dead.Holder())
		}
		lease := check.Value(b.Acquire(f.Context(), 1))(f)
		f.Takes("Acquire", began, ttl, ttl+2*idle)
		f.Unlock(lease)
		f.has()
	})
}

// TestTheTurnIsLost deletes the row of the turn while its holder waits: no caller gets more permits than
// there are, and all get theirs.
func TestTheTurnIsLost(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, b := f.process("a", 2), f.process("b", 2)
		all := f.acquires(a.WithAutoRenew(true), 2)
		first, second := f.starts(a, 2), f.starts(b, 2)
		for range 5 {
			f.Must(check.ErrorOf(f.DB.DB.ExecContext(f.Context(), "DELETE FROM INT_LOCK WHERE LOCK_KEY = ?", turnRow)))
			time.Sleep(ttl)
			f.waits(first)
			f.waits(second)
			f.has("printers permit 0", "printers permit 1", turnRow)
		}
		f.Unlock(all)
		select {
		case <-first.done:
		case <-second.done:
			first, second = second, first
		}
		f.waits(second)
		f.Must(first.err)
		f.Unlock(first.lease)
		<-second.done
		f.Must(second.err)
		f.Unlock(second.lease)
		f.has()
	})
}

// TestALargeRequestIsNotStarved has so many callers in two processes want one permit each that never
// all are free, and one caller want all. It gets them within a number of acquisitions of the others.
func TestALargeRequestIsNotStarved(t *testing.T) {
	inBubble(t, func(f *fixture) {
		const permits, workers, most = 3, 6, 2000
		var (
			small   atomic.Int32 // acquisitions of one permit
			working sync.WaitGroup
		)
		ctx, cancel := context.WithCancel(f.Context())
		defer working.Wait()
		defer cancel()
		for _, name := range []string{"a", "b"} {
			s := f.process(name, permits)
			for range workers {
				working.Go(func() {
					for ctx.Err() == nil {
						err := s.Execute(ctx, 1, func(context.Context) error {
							small.Add(1)
							time.Sleep(30 * time.Millisecond)
							return nil
						})
						if err != nil && ctx.Err() == nil {
							t.Error(err)
						}
					}
				})
			}
		}
		for small.Load() < 50 {
			time.Sleep(time.Second)
		}
		before := small.Load()
		large := f.starts(f.process("large", permits), permits)
		for large.isWaiting() {
			if n := small.Load() - before; n > most {
				f.Fatalf("not acquired after %d acquisitions of others", n)
			}
			time.Sleep(time.Millisecond)
		}
		f.Must(large.err)
		t.Logf("%d acquisitions of others", small.Load()-before)
		before = small.Load()
		time.Sleep(time.Second)
		if n := small.Load() - before; n > 0 {
			f.Errorf("%d acquisitions beside a lease of all", n)
		}
		cancel()
		working.Wait()
		f.Unlock(large.lease)
		f.has()
	})
}

func (w *waiter) isWaiting() bool {
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

// TestLaterCallersWaitTheirTurn has a caller of the same process and one of another want one permit,
// which is free, while a caller before them waits for two.
func TestLaterCallersWaitTheirTurn(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, b := f.process("a", 2), f.process("b", 2)
		one := f.acquires(a.WithAutoRenew(true), 1)
		large := f.starts(a, 2)
		time.Sleep(time.Second)
		same, other := f.starts(a, 1), f.starts(b, 1)
		time.Sleep(2 * ttl)
		f.waits(large)
		f.waits(same)
		f.waits(other)
		for _, s := range []interface {
			TryAcquire(context.Context, int) (*sqllock.Lease, error)
		}{a, b} {
			_, err := s.TryAcquire(f.Context(), 1)
			var held *sqllock.HeldError
			if !errors.As(err, &held) || held.Holder == one.Holder() || held.Holder == "" {
				f.Errorf("%v: it does not name the waiter", err)
			}
		}
		f.Unlock(one)
		<-large.done
		f.Must(large.err)
		f.waits(same)
		f.Unlock(large.lease)
		<-same.done
		<-other.done
		f.Must(errors.Join(same.err, other.err))
		f.Unlock(same.lease, other.lease)
		f.has()
	})
}

// TestTheWaitIsLimited has waits end by their own limit, by a deadline and by a cancellation, while the
// permits are held and while another caller has the turn.
func TestTheWaitIsLimited(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*fixture) string{
		"held":      func(f *fixture) string { return f.acquires(f.process("holder", 3).WithAutoRenew(true), 3).Holder() },
		"other":     func(f *fixture) string { return f.lockTurn().Holder() },
		"this turn": func(f *fixture) string { return f.acquires(f.process("holder", 3).WithAutoRenew(true), 1).Holder() },
	} {
		runInBubble(t, name, func(f *fixture) {
			holder := before(f)
			rows := f.rows()
			a := f.process("a", 3)
			errAsPlanned := errors.New("as planned")

			began := time.Now()
			_, err := a.TryAcquireFor(f.Context(), 3, 1234*time.Millisecond)
			f.Takes("TryAcquireFor", began, 1234*time.Millisecond, 1234*time.Millisecond)
			f.Is(err, sqllock.ErrNotAcquired)
			f.IsNot(err, context.DeadlineExceeded)
			f.isHeldBy(err, holder)
			check.Contains(f.T, err.Error(), "; waited 1.2s")
			f.has(rows...)

			f.isHeldBy(check.ErrorOf(a.TryAcquireFor(f.Context(), 3, 0)), holder)

			limited, cancel := context.WithTimeout(f.Context(), time.Second)
			defer cancel()
			began = time.Now()
			_, err = a.TryAcquireFor(limited, 3, time.Hour)
			f.Takes("TryAcquireFor", began, time.Second, time.Second)
			f.Is(err, sqllock.ErrNotAcquired, context.DeadlineExceeded)
			f.isHeldBy(err, holder)
			f.has(rows...)

			w := f.starts(a, 3)
			time.Sleep(time.Second)
			f.waits(w)
			w.cancel(errAsPlanned)
			synctest.Wait()
			<-w.done
			f.Is(w.err, sqllock.ErrNotAcquired, context.Canceled, errAsPlanned)
			f.isHeldBy(w.err, holder)
			f.has(rows...)

			ended, end := context.WithCancelCause(f.Context())
			end(errAsPlanned)
			for _, wait := range []time.Duration{0, time.Second} {
				f.Is(check.ErrorOf(a.TryAcquireFor(ended, 3, wait)), sqllock.ErrNotAcquired, context.Canceled, errAsPlanned)
			}
			f.has(rows...)
		})
	}
}

// lockTurn makes it the turn of a caller that does nothing.
func (f *fixture) lockTurn() *sqllock.Lease {
	f.Helper()
	lock := check.Value(f.registry("waiter").Obtain(turnRow))(f)
	return check.Value(lock.WithAutoRenew(true).TryLock(f.Context()))(f)
}

// isHeldBy checks whom an error names.
func (f *fixture) isHeldBy(err error, holder string) {
	f.Helper()
	var held *sqllock.HeldError
	if !errors.As(err, &held) || held.Key != key || held.Holder != holder || held.Left <= 0 || held.Left > ttl {
		f.Fatalf("error %v (%+v), want one about %s", err, held, holder)
	}
}

// TestALimitLeavesTheLease has the lease outlast the wait, and the context of the lease be made from
// the caller's.
func TestALimitLeavesTheLease(t *testing.T) {
	inBubble(t, func(f *fixture) {
		type name struct{}
		a := f.process("a", 1).WithAutoRenew(true)
		one := f.acquires(a, 1)
		time.AfterFunc(time.Second, func() { _ = one.Unlock(f.Context()) })
		ctx, cancel := context.WithCancel(context.WithValue(f.Context(), name{}, "a value"))
		lease := check.Value(a.TryAcquireFor(ctx, 1, 2*time.Second))(f)
		time.Sleep(10 * ttl)
		f.Must(lease.Context().Err())
		if lease.Context().Value(name{}) != "a value" {
			f.Error("the lease has another context")
		}
		cancel()
		f.Is(lease.Context().Err(), context.Canceled)
		f.Unlock(lease)
		f.has()
	})
}

// TestClose closes the registry while a caller waits for permits, and another for the turn.
func TestClose(t *testing.T) {
	inBubble(t, func(f *fixture) {
		registry := f.registry("a")
		a, b := f.semaphore(registry, 2), f.process("b", 2)
		theirs := f.acquires(b.WithAutoRenew(true), 1)
		ours := f.acquires(a, 1)
		first := f.starts(a, 2)
		time.Sleep(time.Second)
		second := f.starts(a, 1)
		time.Sleep(time.Second)
		f.waits(first)
		f.waits(second)
		f.Must(registry.Close(f.Context()))
		<-first.done
		<-second.done
		f.Is(first.err, sqllock.ErrClosed)
		f.Is(second.err, sqllock.ErrClosed)
		f.Is(context.Cause(ours.Context()), sqllock.ErrClosed)
		f.has(theirs.Key())
		for range 2 {
			f.Is(check.ErrorOf(a.TryAcquire(f.Context(), 2)), sqllock.ErrClosed) // too few are free, and then enough
			f.Is(check.ErrorOf(a.Acquire(f.Context(), 2)), sqllock.ErrClosed)
			f.Is(a.Execute(f.Context(), 1, func(context.Context) error { return nil }), sqllock.ErrClosed)
			f.Unlock(theirs)
		}
		f.has()
	})
}
