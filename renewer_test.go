package sqllock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/observe"
)

// renewalTTL is a time-to-live of which a third is a round number. The tests run in bubbles
// whose clock costs nothing, and which is the database's, too.
const renewalTTL = 5 * time.Minute

// A renewalCount counts the renewals, and has the last error.
type renewalCount struct {
	good, bad, leases atomic.Int64
	last              atomic.Pointer[error]
}

func (p *renewalCount) count(e observe.Renewal) {
	p.leases.Store(int64(e.Leases))
	if e.Err != nil {
		p.bad.Add(1)
		p.last.Store(&e.Err)
	} else {
		p.good.Add(1)
	}
}

// beating returns a fixture whose registry renews by itself.
func renewing(t *testing.T, opts sqllock.RegistryOptions) (*fixture, *renewalCount) {
	t.Helper()
	s, p := newFixture(t, sqllock.Autocommit), new(renewalCount)
	opts.TTL, opts.AutoRenew, opts.Observers = renewalTTL, true, onRenewals(p.count)
	s.registry = newRegistry(t, s.repository, &opts)
	s.lock = obtain(t, s.registry, "k")
	return s, p
}

// inBubble runs a test on a clock of its own.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// The bubble's clock stops when the test ends, before the statements that were
		// left behind have timed out.
		t.Cleanup(func() { time.Sleep(time.Minute) })
		test(t)
	})
}

func TestALeaseIsRenewedEachThirdOfItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		lease := held(s)
		time.Sleep(10*renewalTTL + time.Second)
		must(t, lease.Context().Err())
		if good := p.good.Load(); good != 30 || p.bad.Load() != 0 {
			t.Errorf("%d renewals in ten times-to-live", good)
		}
		must(t, lease.Unlock(t.Context()))
		time.Sleep(renewalTTL)
		if good := p.good.Load(); good != 30 {
			t.Error("renewed after Unlock")
		}
	})
}

// One statement renews all, so that a thousand leases cost what one does.
func TestOneStatementRenewsAll(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		var mu sync.Mutex
		var leases []*sqllock.Lease
		s.tryAll(200, func(lease *sqllock.Lease, err error) {
			mu.Lock()
			defer mu.Unlock()
			must(t, err)
			leases = append(leases, lease)
		})
		s.connector.Follow(nil) // count from here
		time.Sleep(renewalTTL/3 + time.Second)
		if n := s.connector.Count(); n != 1 || p.good.Load() != 1 || p.leases.Load() != 200 {
			t.Errorf("%d statements for %d leases in %d renewals", n, p.leases.Load(), p.good.Load())
		}
		for _, lease := range leases {
			must(t, lease.Context().Err())
		}
	})
}

func TestMaxHoldEndsALeaseThatCouldBeRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const most = renewalTTL * 10 / 3
		s, _ := renewing(t, sqllock.RegistryOptions{MaxHold: most})
		began := time.Now()
		lease := held(s)
		<-lease.Context().Done()
		if after := time.Since(began); after != most {
			t.Errorf("ended after %v", after)
		}
		if err := lease.Unlock(t.Context()); !errors.Is(err, sqllock.ErrLockLost) {
			t.Error(err)
		}
		_, err := s.db.DB.ExecContext(t.Context(), "DELETE FROM INT_LOCK") // it has not expired yet
		must(t, err)
		lease = held(s)
		time.Sleep(most - renewalTTL)
		must(t, lease.Renew(t.Context())) // MaxHold does not limit Renew
		time.Sleep(renewalTTL - 2*time.Second)
		must(t, lease.Context().Err())
		must(t, lease.Unlock(t.Context()))
	})
}

// Renewals belong to the lease, not to the caller that acquired it.
func TestRenewalsOutliveTheContextOfLock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		lease, err := s.lock.Lock(ctx)
		must(t, err)
		cancel()
		time.Sleep(2*renewalTTL + time.Second)
		if p.good.Load() != 6 || time.Until(lease.Deadline()) <= 0 {
			t.Errorf("%d renewals, %v left", p.good.Load(), time.Until(lease.Deadline()))
		}
		must(t, lease.Unlock(ctx))
	})
}

// One failed renewal loses nothing; an outage that outlasts the lease ends its
// context in time, and is reported.
func TestRenewalsThatFail(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		lease := held(s)
		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		time.Sleep(renewalTTL/3 + renewalTTL/6) // the first fails, and some more
		s.connector.Follow(nil)
		failed := p.bad.Load()
		time.Sleep(renewalTTL)
		if p.good.Load() < 2 || failed < 2 {
			t.Errorf("%d good, %d bad", p.good.Load(), failed)
		}
		must(t, lease.Context().Err())

		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		end := lease.Deadline()
		<-lease.Context().Done()
		if !errors.Is(context.Cause(lease.Context()), sqllock.ErrLockLost) || time.Since(end) > renewalTTL/3 {
			t.Error(context.Cause(lease.Context()), time.Since(end))
		}
		s.connector.Follow(nil)
		if err := lease.Unlock(t.Context()); !errors.Is(err, sqllock.ErrLockLost) {
			t.Error(err)
		}
	})
}

// A driver that waits for a dead connection forever, whatever its context says, delays one
// try only.
func TestADeadConnectionDoesNotDelayRenewals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		lease := held(s)
		dead, once := make(chan struct{}), atomic.Bool{}
		s.connector.Follow(func(context.Context, flaky.Moment) error {
			if once.CompareAndSwap(false, true) {
				<-dead
				return errGone
			}
			return nil
		})
		time.Sleep(3 * renewalTTL)
		if p.bad.Load() != 1 || p.good.Load() < 6 {
			t.Fatalf("%d good, %d bad", p.good.Load(), p.bad.Load())
		}
		if err := *p.last.Load(); !errors.Is(err, sqllock.ErrDatabase) {
			t.Errorf("no answer is %v", err)
		}
		must(t, lease.Context().Err())
		close(dead)
		must(t, lease.Unlock(t.Context()))
	})
}

// An answer that is no longer waited for is still good if the lease lasts.
func TestALateRenewalCounts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		lease := held(s)
		began := lease.Deadline()
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if !m.Done {
				time.Sleep(renewalTTL * 2 / 5) // longer than a try may take
			}
			return nil
		})
		time.Sleep(renewalTTL - time.Second)
		s.connector.Follow(nil)
		if p.bad.Load() == 0 || !lease.Deadline().After(began) {
			t.Errorf("%d tries failed, %v left", p.bad.Load(), time.Until(lease.Deadline()))
		}
		time.Sleep(renewalTTL)
		must(t, lease.Context().Err())
		must(t, lease.Unlock(t.Context()))
	})
}

// Close does not wait for the next beat, and ends one that is under way.
func TestCloseEndsRenewals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		held(s)
		began := time.Now()
		must(t, s.registry.Close(t.Context()))
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %v", took)
		}
		time.Sleep(renewalTTL)
		if p.good.Load()+p.bad.Load() != 0 {
			t.Error("renewed after Close")
		}
	})
	t.Run("UnderWay", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			s, p := renewing(t, sqllock.RegistryOptions{})
			held(s)
			late := holdBack(s, flaky.Query)
			<-late.reached
			time.AfterFunc(time.Second, func() { close(late.let) })
			must(t, s.registry.Close(t.Context()))
			if p.good.Load()+p.bad.Load() != 0 {
				t.Error("a renewal was reported that Close has ended")
			}
			time.Sleep(2 * time.Second) // for the driver, which does not look at its context
		})
	})
}

// A renewal that finds the row gone ends the lease. One that meets the holder's own Unlock
// does not.
func TestARenewalThatMeetsUnlock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		lease := held(s)
		late := holdBack(s, flaky.Query)
		<-late.reached
		must(t, lease.Unlock(t.Context()))
		close(late.let)
		time.Sleep(renewalTTL)
		if !errors.Is(context.Cause(lease.Context()), context.Canceled) || p.good.Load() != 1 {
			t.Error(context.Cause(lease.Context()), p.good.Load())
		}
		must(t, lease.Unlock(t.Context()))
	})
}
