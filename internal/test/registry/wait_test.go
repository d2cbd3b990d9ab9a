package registry_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	shared "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// A row that ends centuries ahead, such as one written by hand for maintenance, is
// polled at the same pace as any other.
func TestWait_RowWithoutEndIsPolledAtTheUsualPace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		must(t, check.ErrorOf(s.repository.Acquire(t.Context(), "k", "maintenance", ttl)))
		s.db.DB.MustExec("UPDATE INT_LOCK SET EXPIRED_AFTER = '9999-12-31 00:00:00.000'")
		lock := obtain(t, newRegistry(t, s.repository, &sqllock.RegistryOptions{IdleBetweenTries: 100 * time.Millisecond, NoRenew: true}), "k")
		const wait, most = 2 * time.Second, 110 // a poll takes no time here, so there is one each 20 to 25 ms
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.N > most {
				cancel()
			}
			return nil
		})
		is(t, check.ErrorOf(lock.TryLockFor(ctx, wait)), sqllock.ErrNotAcquired)
		if n := s.connector.Count(); n > most {
			t.Errorf("more than %d statements in %v", most, wait)
		}
	})
}

// Waiters try within a few milliseconds after the row has expired, however long they
// would pause otherwise.
func TestWait_ExpiryIsNoticedWithinMilliseconds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		const waiters, left = 20, time.Hour
		must(t, check.ErrorOf(s.repository.Acquire(t.Context(), "k", "rival", left)))
		var polls atomic.Int64
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && m.Done {
				polls.Add(1)
			}
			return nil
		})
		var waiting sync.WaitGroup
		var acquired atomic.Int64
		for range waiters { // each in a process of its own
			registry := newRegistry(t, s.repository, &sqllock.RegistryOptions{IdleBetweenTries: 24 * time.Hour, NoRenew: true})
			lock := obtain(t, registry, "k")
			waiting.Go(func() {
				_, err := lock.TryLockFor(t.Context(), left+10*time.Millisecond)
				if err == nil {
					acquired.Add(1)
				} else if !errors.Is(err, sqllock.ErrNotAcquired) {
					t.Error(err)
				}
			})
		}
		time.Sleep(left / 2)
		before := polls.Load()
		waiting.Wait()
		if n := polls.Load() - before; n < waiters || acquired.Load() != 1 {
			t.Errorf("%d of %d waiters polled within 10ms of the end of the lease, %d acquired", n, waiters, acquired.Load())
		}
	})
}

// crowd has callers wait for as many keys, which another process holds, over a database whose
// answers take their time. It returns the number of statements that the waiters send, and a
// function that ends them.
func crowd(t *testing.T, waiters int, answer time.Duration) (s *fixture, sent *atomic.Int64) {
	t.Helper()
	return crowdOf(t, waiters, answer, nil)
}

// crowdOf is crowd of a repository with options.
func crowdOf(t *testing.T, waiters int, answer time.Duration, opts *sqllock.RepositoryOptions) (s *fixture, sent *atomic.Int64) {
	t.Helper()
	var keys []string
	s = newFixture(t, sqllock.Serializable)
	s.registry = newRegistry(t, newRepository(t, s.pool, opts), &sqllock.RegistryOptions{TTL: ttl, NoRenew: true})
	other := newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: never, NoRenew: true})
	for i := range waiters {
		keys = append(keys, fmt.Sprint("key ", i))
		must(t, check.ErrorOf(other.Lock(t.Context(), keys[i])))
	}
	sent = new(atomic.Int64)
	s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
		if m.Op == flaky.Query && !m.Done {
			sent.Add(1)
			time.Sleep(answer)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for _, key := range keys {
		go func() {
			_, err := s.registry.Lock(ctx, key)
			ended <- err
		}()
	}
	t.Cleanup(func() {
		cancel()
		for range keys {
			is(t, <-ended, sqllock.ErrNotAcquired)
		}
	})
	return s, sent
}

// The waiters of a process are answered by one statement an interval. Polls that cost little are up to four
// times as frequent, and those that cost much no more frequent than IdleBetweenTries.
func TestWait_PollsAreBatched(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waiters     int
		answer      time.Duration
		least, most int64 // in ten seconds
	}{
		"fifty": {50, 4 * time.Millisecond, 90, 120},
		// 80 to 100 ms of pause, and 20 for the answer
		"one": {1, 20 * time.Millisecond, 80, 101},
		// The pauses are up to a fifth shorter at random.
		"expensive": {10, 5 * time.Millisecond, 65, 130},
		"cheap":     {10, 300 * time.Microsecond, 250, 500},
	} {
		runInBubble(t, name, func(t *testing.T) {
			_, sent := crowd(t, test.waiters, test.answer)
			time.Sleep(3 * time.Second) // the attempts are made
			sent.Store(0)
			time.Sleep(10 * time.Second)
			if n := sent.Load(); n < test.least || n > test.most {
				t.Errorf("%d statements in 10 s", n)
			}
		})
	}
}

// handOffs returns in order how long it takes a waiting process to acquire what another one has
// released, for a number of keys that it waits for at once. Each statement takes 0.3 ms.
func handOffs(t *testing.T, keys, rounds int) (took []time.Duration) {
	t.Helper()
	s := newFixture(t, sqllock.Serializable)
	s.delay(300 * time.Microsecond / 4) // a statement is a few operations
	defer s.connector.Follow(nil)
	other := newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: never, NoRenew: true})
	var working sync.WaitGroup
	var mu sync.Mutex
	for i := range keys {
		key := fmt.Sprint("key ", i)
		working.Go(func() {
			for range rounds {
				lease := check.Value(other.Lock(t.Context(), key))(t)
				got := make(chan time.Time)
				go func() {
					lease := check.Value(s.registry.Lock(t.Context(), key))(t)
					got <- time.Now()
					must(t, lease.Unlock(t.Context()))
					close(got)
				}()
				// Like those of the benchmark, the releases fall into all phases of the polls.
				time.Sleep(10*time.Millisecond + rand.N(100*time.Millisecond))
				released := time.Now()
				must(t, lease.Unlock(t.Context()))
				after := (<-got).Sub(released)
				<-got
				mu.Lock()
				took = append(took, after)
				mu.Unlock()
			}
		})
	}
	working.Wait()
	slices.Sort(took)
	return took
}

// Without wake-ups a process finds a release within 25 ms, on average in half of that.
func TestWait_PollsFindAReleaseSoon(t *testing.T) {
	t.Parallel()
	check.Long(t)
	for keys, rounds := range map[int]int{1: 200, 20: 30} { // of 200 and 600 waits p99 is 24 ms, give or take one
		runInBubble(t, fmt.Sprint(keys), func(t *testing.T) {
			const p50, p99 = 15 * time.Millisecond, 35 * time.Millisecond
			took := handOffs(t, keys, rounds)
			half, most := took[len(took)/2], took[len(took)*99/100]
			t.Logf("p50 %v, p99 %v", half, most)
			if half > p50 || most > p99 {
				t.Errorf("p50 %v, p99 %v; %v and %v are promised", half, most, p50, p99)
			}
		})
	}
}

// IdleBetweenTries is the longest pause, and a quarter of it the shortest if that is more than 25 ms.
func TestWait_PollsAreAsRareAsAskedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		other := newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: never, NoRenew: true})
		must(t, check.ErrorOf(other.Lock(t.Context(), "k")))
		var sent atomic.Int64
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && !m.Done {
				sent.Add(1)
			}
			return nil
		})
		for idle, most := range map[time.Duration]int64{10 * time.Millisecond: 126, time.Second: 5, time.Minute: 0} {
			r := newRegistry(t, newRepository(t, s.pool, nil), &sqllock.RegistryOptions{IdleBetweenTries: idle, NoRenew: true})
			ctx, cancel := context.WithCancel(t.Context())
			ended := check.Begin(func() error { return check.ErrorOf(r.Lock(ctx, "k")) })
			time.Sleep(5 * time.Millisecond) // the attempt
			sent.Store(0)
			time.Sleep(time.Second)
			if n := sent.Load(); n < most/2 || n > most {
				t.Errorf("%d polls a second if IdleBetweenTries is %v", n, idle)
			}
			cancel()
			is(t, <-ended, sqllock.ErrNotAcquired)
		}
	})
}

// A poll of many that fails once ends no wait, and is sent once more: one broken connection does not
// make each waiter send a statement of its own.
func TestWait_OnePollOfManyFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _ := crowd(t, 50, 4*time.Millisecond)
		time.Sleep(3 * time.Second) // the attempts are made
		var sent atomic.Int64
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && !m.Done && sent.Add(1) == 1 {
				return errGone
			}
			return nil
		})
		time.Sleep(200 * time.Millisecond) // crowd checks that the waits end by their contexts
		if n := sent.Load(); n < 2 || n > 10 {
			t.Errorf("%d statements after a poll has failed", n)
		}
	})
}

// What a poll of many fails with, each waiter gets with its own key.
func TestWait_FailedPollOfMany(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		other := newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: never, NoRenew: true})
		var failing atomic.Bool
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && !m.Done {
				time.Sleep(4 * time.Millisecond)
				if failing.Load() {
					return errGone
				}
			}
			return nil
		})
		got := make(map[string]chan error)
		for i := range 20 {
			key := fmt.Sprint("key ", i)
			must(t, check.ErrorOf(other.Lock(t.Context(), key)))
			ended := make(chan error, 1)
			got[key] = ended
			go func() {
				_, err := s.registry.Lock(t.Context(), key)
				ended <- err
			}()
		}
		time.Sleep(10 * time.Second)
		failing.Store(true)
		for key, ended := range got {
			if err := <-ended; !errors.Is(err, sqllock.ErrDatabase) || !errors.Is(err, errGone) || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %v", key, err)
			}
		}
	})
}

// A poll that has no answer holds up no waiter for long: after a second they poll together once more,
// and after another one each reads its row by itself, a few at a time. Then they poll together again.
func TestWait_PollsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	const waiters = 20
	for name, c := range map[string]struct {
		stuck           int64 // how many polls have no answer
		after           time.Duration
		atLeast, atMost int64 // so many other statements are sent until then
		opts            *sqllock.RepositoryOptions
	}{
		"one":                  {1, 1050 * time.Millisecond, 1, 2, nil},
		"two":                  {2, 2080 * time.Millisecond, waiters, waiters + 2, nil},
		"two without batching": {2, 2080 * time.Millisecond, waiters, waiters + 2, &sqllock.RepositoryOptions{DisableBatching: true}},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s, _ := crowdOf(t, waiters, 4*time.Millisecond, c.opts)
			time.Sleep(5 * time.Second)
			first, answer := make(chan struct{}), make(chan struct{})
			var sent, now, most atomic.Int64
			s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
				if m.Op != flaky.Query || m.Done {
					return nil
				}
				n := sent.Add(1)
				if n == 1 {
					close(first)
				}
				if n <= c.stuck {
					<-answer
					return nil
				}
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(4 * time.Millisecond)
				now.Add(-1)
				return nil
			})
			<-first
			time.Sleep(c.after)
			if n := sent.Load() - c.stuck; n < c.atLeast || n > c.atMost || most.Load() > 4 {
				t.Errorf("%d statements beside those without an answer, %d at a time", n, most.Load())
			}
			time.Sleep(2 * time.Second)
			sent.Store(c.stuck)
			time.Sleep(time.Second)
			if n := sent.Load() - c.stuck; n > 15 {
				t.Errorf("%d statements a second, for %d waiters that poll together again", n, waiters)
			}
			close(answer)
		})
	}
}

// Connections that have died silently, with polls on them, do not keep their places in the pool until
// the time-to-live ends: the renewals need them.
func TestWait_PollsOnDeadConnectionsEndNoLease(t *testing.T) {
	t.Parallel()
	for _, waiters := range []int{1, 2} {
		runInBubble(t, fmt.Sprint(waiters), func(t *testing.T) {
			const ttl = 20 * time.Second
			s := newFixture(t, sqllock.Serializable)
			other := newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: never, NoRenew: true})
			shared.Limited(s.pool, waiters)
			registry := newRegistry(t, newRepository(t, s.pool, nil), &sqllock.RegistryOptions{TTL: ttl})
			lease := check.Value(registry.Lock(t.Context(), "mine"))(t)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			for i := range waiters {
				must(t, check.ErrorOf(other.Lock(t.Context(), fmt.Sprint(i))))
				go func() {
					_, err := registry.Lock(ctx, fmt.Sprint(i))
					ended <- err
				}()
			}
			time.Sleep(time.Second)
			var polls atomic.Int64
			s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
				if m.Op == flaky.Query && !m.Done && polls.Add(1) <= int64(waiters) {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			})
			time.Sleep(2 * ttl)
			must(t, lease.Context().Err())
			cancel()
			for range waiters {
				is(t, <-ended, sqllock.ErrNotAcquired)
			}
		})
	}
}

// TestWait_Waiting counts callers that wait, behind another process and behind a lease of their own.
func TestWait_Waiting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		check.Must(t, check.ErrorOf(s.repository.Acquire(t.Context(), "other", s.repository.NewHolder(), ttl)))
		lease := check.Value(s.registry.Lock(t.Context(), "mine"))(t)
		done := make(chan error)
		for _, key := range []string{"mine", "other", "other"} {
			go func() { done <- s.registry.ExecuteLocked(t.Context(), key, nothing) }()
		}
		joint := check.Value(s.registry.ObtainAll("free", "other"))(t)
		go func() { done <- joint.ExecuteLocked(t.Context(), nothing) }()
		synctest.Wait()
		if got, want := s.registry.Waiting(), map[string]int{"mine": 1, "other": 3, "free": 1}; !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		must(t, lease.Unlock(t.Context()))
		for range 4 {
			must(t, <-done)
		}
		check.Equal(t, "keys that are waited for", len(s.registry.Waiting()), 0)
	})
}

// TestWake_ReleaseBeforeTheSubscription releases after the waiter's try, and before it
// has subscribed: no wake-up will come.
func TestWake_ReleaseBeforeTheSubscription(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, waker := migrated(t), &shared.Waker{}
		lease := locked(t, obtain(t, newRegistry(t, newRepository(t, db.DB, nil), nil), "k"))
		waker.OnWatch = func() { must(t, lease.Unlock(t.Context())) }
		waiting := newRegistry(t, newRepository(t, db.DB, nil), &sqllock.RegistryOptions{IdleBetweenTries: never, TTL: never, Waker: waker, NoRenew: true})
		must(t, check.Value(obtain(t, waiting, "k").TryLockFor(t.Context(), 30*time.Second))(t).Unlock(t.Context()))
		if _, subscriptions := waker.Seen(); subscriptions != 0 {
			t.Errorf("%d subscriptions that stay", subscriptions)
		}
	})
}

// TestWake_WaiterSubscribesOnce wakes the waiter a few times without a release: it tries, and waits on.
func TestWake_WaiterSubscribesOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, waker := migrated(t), &shared.Waker{}
		repository := newRepository(t, db.DB, &sqllock.RepositoryOptions{Region: "r", Prefix: "int_"})
		lease := locked(t, obtain(t, newRegistry(t, repository, &sqllock.RegistryOptions{TTL: never, NoRenew: true}), "k"))
		waiting := newRegistry(t, repository, &sqllock.RegistryOptions{IdleBetweenTries: never, TTL: never, Waker: waker, NoRenew: true})
		ctx, cancel := context.WithCancel(t.Context())
		waker.OnWatch = func() {
			go func() {
				for range 5 {
					waker.WakeAll()
				}
				cancel()
			}()
		}
		is(t, check.ErrorOf(obtain(t, waiting, "k").Lock(ctx)), sqllock.ErrNotAcquired)
		names := check.Value(sqltext.NamesFor("INT_"))(t)
		key := check.Value(repository.LockKey("k"))(t)
		topics, subscriptions := waker.Seen()
		if len(topics) != 1 || topics[0] != names.Topic("r", key) {
			t.Errorf("watched %q", topics)
		}
		check.Equal(t, "subscriptions that stay", subscriptions, 0)
		must(t, lease.Unlock(t.Context()))
	})
}

// TestWake_CallerThatNeedNotWait spares a lock that is free the subscription.
func TestWake_CallerThatNeedNotWait(t *testing.T) {
	t.Parallel()
	waker := &shared.Waker{}
	registry := newRegistry(t, newRepository(t, migrated(t).DB, nil), &sqllock.RegistryOptions{Waker: waker, NoRenew: true})
	lease := locked(t, obtain(t, registry, "k"))
	is(t, check.ErrorOf(obtain(t, registry, "k").TryLock(t.Context())), sqllock.ErrNotAcquired)
	must(t, lease.Unlock(t.Context()))
	if topics, _ := waker.Seen(); len(topics) != 0 {
		t.Errorf("watched %q", topics)
	}
}
