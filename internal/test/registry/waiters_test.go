package registry_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/engine"
	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/internal/test/check"
	shared "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// TestWaiters_OfAnotherProcess has another process read who waits, whatever for and how.
func TestWaiters_OfAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hold, wait claim
		seen       bool
	}{
		"a lock":       {lockOf("k"), lockOf("k"), true},
		"a joint lock": {lockOf("k"), lockOf("a", "k", "z"), true},
		"a semaphore":  {permit, permit, true},
		"a reader":     {ofReaders((*rwlock.Lock).Lock), ofReaders((*rwlock.Lock).RLock), true},
		"a writer":     {ofReaders((*rwlock.Lock).RLock), ofReaders((*rwlock.Lock).Lock), true},
		"two writers":  {ofReaders((*rwlock.Lock).Lock), ofReaders((*rwlock.Lock).Lock), true},
		"a candidate":  {lockOf("k"), campaign, false},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Autocommit)
			holds := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Hour})
			must(t, check.ErrorOf(test.hold(t.Context(), holds)))
			waits := shared.NewRegistry(t, s.another(sqllock.Autocommit).repository, &sqllock.RegistryOptions{
				TTL: time.Hour, IdleBetweenTries: time.Second, Application: "orders", ReportWaitAfter: -1,
			})
			ctx, cancel := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			for i := range 3 {
				callers.Go(func() {
					time.Sleep(time.Duration(i) * time.Second)
					_, _ = test.wait(ctx, waits)
				})
			}
			time.Sleep(20 * time.Second)
			lockKey := check.Value(s.repository.LockKey("k"))(t)
			switch all := s.repository.Waiters(t.Context()); {
			case !test.seen:
				check.Equal(t, "waiters", len(all), 0)
			case len(all) != 1:
				t.Errorf("%+v", all)
			default:
				w := all[0]
				if w.Waited < 19*time.Second || w.Waited > 21*time.Second {
					t.Errorf("waited %v", w.Waited)
				}
				w.Waited = 0
				process := sqllock.Process{Host: w.Process.Host, PID: w.Process.PID, Application: "orders", Version: w.Process.Version}
				check.Equal(t, "waiter", w, sqllock.Waiter{
					Region: s.repository.Region(), LockKey: lockKey, Key: "k", ClientID: waits.Repository().ClientID(), Process: process, Callers: 3,
				})
			}
			cancel()
			callers.Wait()
			time.Sleep(2 * time.Second)
			check.Equal(t, "waiters when all have given up", len(s.repository.Waiters(t.Context())), 0)
		})
	}
}

// TestWaiters_BoundedWrites counts the statements of a process whose callers wait for sixty locks: none in the first
// five seconds but for names, then one every five seconds, and one at the end. What does not fit is left out.
func TestWaiters_BoundedWrites(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		other := s.another(sqllock.Autocommit)
		holder := shared.NewRegistry(t, other.repository, &sqllock.RegistryOptions{TTL: time.Hour})
		registry := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{
			TTL: time.Hour, IdleBetweenTries: 10 * time.Second, ReportWaitAfter: -1, // polls write nothing
		})
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for i := range 60 {
			key := fmt.Sprint("k", i)
			must(t, check.ErrorOf(holder.TryLock(t.Context(), key)))
			callers.Go(func() { _, _ = registry.Lock(ctx, key) })
		}
		time.Sleep(3 * time.Second)
		check.Equal(t, "statements below the limit", s.countExecs(func() { time.Sleep(1900 * time.Millisecond) }), 0)
		time.Sleep(10 * time.Second)
		if n := s.countExecs(func() { time.Sleep(time.Minute) }); n < 9 || n > 12 {
			t.Errorf("%d statements in a minute, want about 10", n)
		}
		all := other.repository.Waiters(t.Context())
		if len(all) < 15 || len(all) > 20 {
			t.Errorf("%d waiters, want those that fit", len(all))
		}
		for _, w := range all {
			if !strings.HasPrefix(w.Key, "k") || w.Callers != 1 || w.Waited < 70*time.Second || w.Waited > 80*time.Second {
				t.Errorf("%+v", w)
			}
		}
		check.Equal(t, "statements at the end", s.countExecs(func() {
			cancel()
			callers.Wait()
			time.Sleep(time.Minute)
		}), 1)
		check.Equal(t, "waiters", len(other.repository.Waiters(t.Context())), 0)
	})
}

// TestWaiters_OfAProcessThatEnds closes one registry while it waits, and has the database of another one fail for good.
func TestWaiters_OfAProcessThatEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		lease := tryKey(t, shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Hour, DisableNames: true}), "k")
		reader := newRepository(t, s.db.DB, nil)
		closed, killed := s.another(sqllock.Autocommit), s.another(sqllock.Autocommit)
		for _, one := range []*fixture{closed, killed} {
			r := shared.NewRegistry(t, one.repository, &sqllock.RegistryOptions{TTL: time.Hour})
			waiting := check.Begin(func() error { return check.ErrorOf(r.Lock(t.Context(), "k")) })
			time.Sleep(20 * time.Second)
			check.Equal(t, "waiters", len(reader.Waiters(t.Context())), 1)
			if one == closed {
				must(t, r.Close(t.Context()))
				is(t, <-waiting, sqllock.ErrClosed)
				check.Equal(t, "waiters after Close", len(reader.Waiters(t.Context())), 0)
				continue
			}
			one.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
			is(t, <-waiting, errGone)
			time.Sleep(20 * time.Second)
			check.Equal(t, "waiters of a process that was killed lately", len(reader.Waiters(t.Context())), 1)
			time.Sleep(20 * time.Second)
			check.Equal(t, "waiters of a process that was killed", len(reader.Waiters(t.Context())), 0)
			one.connector.Follow(nil)
		}
		must(t, lease.Unlock(t.Context()))
	})
}

// TestWaiters_OfAProcessThatLeavesItsLock has one end without Close when it has the lock, as `sqllock acquire` does.
func TestWaiters_OfAProcessThatLeavesItsLock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		other := s.another(sqllock.Autocommit)
		held := tryKey(t, shared.NewRegistry(t, other.repository, &sqllock.RegistryOptions{TTL: time.Hour}), "k")
		registry := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Hour, NoRenew: true, ReportWaitAfter: -1})
		waiting := check.Begin(func() error { return check.ErrorOf(registry.Lock(t.Context(), "k")) })
		time.Sleep(20 * time.Second)
		check.Equal(t, "waiters", len(other.repository.Waiters(t.Context())), 1)
		must(t, held.Unlock(t.Context()))
		must(t, <-waiting)
		engine.LocksOf(registry).LeaveNamed(t.Context())
		check.Equal(t, "waiters when it has the lock", len(other.repository.Waiters(t.Context())), 0)
		check.Equal(t, "names", s.namedKeys(), 1)
		check.Equal(t, "statements after that", s.countExecs(func() { time.Sleep(time.Minute) }), 0)
	})
}

// TestWaiters_AreNamedAgain has a caller wait, as for a semaphore, while names are deleted that were not written lately.
func TestWaiters_AreNamedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		registry := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: 3 * time.Hour, NoRenew: true, ReportWaitAfter: -1})
		must(t, check.ErrorOf(registry.TryLock(t.Context(), "the turn")))
		caller := report.TrackerOf(registry).Begin(t.Context(), report.Place{Key: "k", LockKey: check.Value(s.repository.LockKey("k"))(t)})
		defer caller.End()
		for range 2 {
			time.Sleep(time.Hour + time.Minute)
			if all := s.repository.Waiters(t.Context()); len(all) != 1 || all[0].Key != "k" {
				t.Errorf("waiters: %+v", all)
			}
			s.db.DB.MustExecContext(t.Context(), "DELETE FROM INT_LOCK_NAME WHERE ID LIKE 'key:%'")
		}
	})
}

// TestWaiters_WithoutNames has a registry without names wait, and a table without names be read.
func TestWaiters_WithoutNames(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		lease := tryKey(t, shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Hour, DisableNames: true}), "k")
		silent := shared.NewRegistry(t, s.another(sqllock.Autocommit).repository, &sqllock.RegistryOptions{TTL: time.Hour, DisableNames: true})
		is(t, check.ErrorOf(obtain(t, silent, "k").TryLockFor(t.Context(), time.Minute)), sqllock.ErrNotAcquired)
		var n int
		must(t, s.db.DB.GetContext(t.Context(), &n, "SELECT COUNT(*) FROM INT_LOCK_NAME"))
		check.Equal(t, "rows of the table of names", n, 0)
		s.db.DB.MustExecContext(t.Context(), "DROP TABLE INT_LOCK_NAME")
		check.Equal(t, "waiters", len(s.repository.Waiters(t.Context())), 0)
		must(t, lease.Unlock(t.Context()))
	})
}

// A process has the lock almost all the time, for longer than its minimum hold each time. It steps back for another one, of which it
// sees one holder at a time, after 100 ms, not only after a hundred times IdleBetweenTries.
func TestWaiters_AMinimumHoldThatHasPassed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		lockOfAnother := func() *sqllock.JdbcLock {
			registry := shared.NewRegistry(t, s.another(sqllock.Autocommit).repository, &sqllock.RegistryOptions{TTL: time.Minute, IdleBetweenTries: 20 * time.Millisecond})
			return obtain(t, registry, "k").WithMinHold(time.Millisecond)
		}
		busy, seldom := lockOfAnother(), lockOfAnother()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var all sync.WaitGroup
		begin := func(lock *sqllock.JdbcLock, held, pause time.Duration) (turns *atomic.Int64) {
			turns = new(atomic.Int64)
			all.Go(func() {
				for {
					lease, err := lock.Lock(ctx)
					if err != nil {
						return
					}
					turns.Add(1)
					time.Sleep(held)
					must(t, lease.Unlock(context.WithoutCancel(ctx)))
					time.Sleep(pause)
				}
			})
			return turns
		}
		begin(busy, 20*time.Millisecond, 0)
		begin(busy, 20*time.Millisecond, 0)
		turns := begin(seldom, 100*time.Millisecond, 200*time.Millisecond)
		all.Wait()
		if n := turns.Load(); n < 15 {
			t.Errorf("in ten seconds the other process had the lock %d times", n)
		}
	})
}
