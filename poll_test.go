package sqllock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// crowd has callers wait for as many keys, which another process holds, over a database whose
// answers take their time. It returns the number of statements that the waiters send, and a
// function that ends them.
func crowd(t *testing.T, waiters int, answer time.Duration) (s *fixture, sent *atomic.Int64) {
	t.Helper()
	var keys []string
	s = newFixture(t, sqllock.Serializable)
	other := newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: never})
	for i := range waiters {
		keys = append(keys, fmt.Sprint("key ", i))
		_, err := other.Lock(t.Context(), keys[i])
		must(t, err)
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
			if err := <-ended; !errors.Is(err, sqllock.ErrNotAcquired) {
				t.Error(err)
			}
		}
	})
	return s, sent
}

// Two hundred waiters are answered by one statement an interval.
func TestPollsAreBatched(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		_, sent := crowd(t, 200, 4*time.Millisecond)
		time.Sleep(20 * time.Second) // the attempts are made
		sent.Store(0)
		const seconds = 10
		time.Sleep(seconds * time.Second)
		// A poll an interval, and no fewer: IdleBetweenTries is the upper limit.
		if n := sent.Load(); n < 9*seconds || n > 12*seconds {
			t.Errorf("%d statements in %d s", n, seconds)
		}
	})
}

// A single waiter polls as it always did.
func TestASingleWaiterIsNotDelayed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		_, sent := crowd(t, 1, 20*time.Millisecond)
		time.Sleep(time.Second)
		sent.Store(0)
		time.Sleep(10 * time.Second)
		// 80 to 100 ms of pause, and 20 for the answer
		if n := sent.Load(); n < 80 || n > 101 {
			t.Errorf("%d statements in 10 s", n)
		}
	})
}

// A waiter among many finds a release within an interval, and nobody else's end concerns it.
func TestAWaiterAmongManyFindsARelease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _ := crowd(t, 100, 4*time.Millisecond)
		other := newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: never})
		lease, err := other.Lock(t.Context(), "released")
		must(t, err)
		got := make(chan time.Time, 1)
		go func() {
			lease, err := s.registry.Lock(t.Context(), "released")
			if err != nil {
				t.Error(err)
			}
			got <- time.Now()
			_ = lease.Unlock(t.Context())
		}()
		time.Sleep(20 * time.Second)
		released := time.Now()
		must(t, lease.Unlock(t.Context()))
		// An interval, the poll that is under way, and what acquiring takes beside the polls.
		if took := (<-got).Sub(released); took > 200*time.Millisecond {
			t.Errorf("found after %v", took)
		}
	})
}

// handOffs returns in order how long it takes a waiting process to acquire what another one has
// released, for a number of keys that it waits for at once. Each statement takes 0.3 ms.
func handOffs(t *testing.T, keys, rounds int) (took []time.Duration) {
	t.Helper()
	s := newFixture(t, sqllock.Serializable)
	s.delay(300 * time.Microsecond / 4) // a statement is a few operations
	defer s.connector.Follow(nil)
	other := newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: never})
	var working sync.WaitGroup
	var mu sync.Mutex
	for i := range keys {
		key := fmt.Sprint("key ", i)
		working.Go(func() {
			for range rounds {
				lease, err := other.Lock(t.Context(), key)
				must(t, err)
				got := make(chan time.Time)
				go func() {
					lease, err := s.registry.Lock(t.Context(), key)
					must(t, err)
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
func TestPollsFindAReleaseSoon(t *testing.T) {
	t.Parallel()
	for _, keys := range []int{1, 20} {
		t.Run(fmt.Sprint(keys), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				const p50, p99 = 15 * time.Millisecond, 35 * time.Millisecond
				took := handOffs(t, keys, 300/keys)
				half, most := took[len(took)/2], took[len(took)*99/100]
				t.Logf("p50 %v, p99 %v", half, most)
				if half > p50 || most > p99 {
					t.Errorf("p50 %v, p99 %v; %v and %v are promised", half, most, p50, p99)
				}
			})
		})
	}
}

// A thousand waiters, whose polls cost 5 ms each, poll no more often than IdleBetweenTries; a few
// waiters poll up to four times as often.
func TestPollsOfManyWaitersAreNoMoreFrequent(t *testing.T) {
	t.Parallel()
	for _, few := range []bool{false, true} {
		t.Run(fmt.Sprint(few), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				waiters, answer, most := 1000, 5*time.Millisecond, 13
				if few {
					waiters, answer, most = 10, 300*time.Microsecond, 50
				}
				_, sent := crowd(t, waiters, answer)
				time.Sleep(15 * time.Second) // the attempts are made
				sent.Store(0)
				const seconds = 5
				time.Sleep(seconds * time.Second)
				// The pauses are up to a fifth shorter at random.
				if n := int(sent.Load()); n < seconds*most/2 || n > seconds*most {
					t.Errorf("%d statements in %d s", n, seconds)
				}
			})
		})
	}
}

// IdleBetweenTries is the longest pause, and a quarter of it the shortest if that is more than 25 ms.
func TestPollsAreAsRareAsAskedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		other := newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: never})
		_, err := other.Lock(t.Context(), "k")
		must(t, err)
		var sent atomic.Int64
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && !m.Done {
				sent.Add(1)
			}
			return nil
		})
		for idle, most := range map[time.Duration]int64{10 * time.Millisecond: 126, time.Second: 5, time.Minute: 0} {
			r := newRegistry(t, newRepository(t, s.pool, nil), &sqllock.RegistryOptions{IdleBetweenTries: idle})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				_, err := r.Lock(ctx, "k")
				ended <- err
			}()
			time.Sleep(5 * time.Millisecond) // the attempt
			sent.Store(0)
			time.Sleep(time.Second)
			if n := sent.Load(); n < most/2 || n > most {
				t.Errorf("%d polls a second if IdleBetweenTries is %v", n, idle)
			}
			cancel()
			if err := <-ended; !errors.Is(err, sqllock.ErrNotAcquired) {
				t.Error(err)
			}
		}
	})
}

// A poll of many that fails once ends no wait: the waiters read their rows themselves then.
func TestOnePollOfManyFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _ := crowd(t, 100, 4*time.Millisecond)
		time.Sleep(2 * time.Second)
		var failed atomic.Bool
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && !m.Done && !failed.Swap(true) {
				return errGone
			}
			return nil
		})
		time.Sleep(2 * time.Second) // crowd checks that the waits end by their contexts
		if !failed.Load() {
			t.Error("there was no poll")
		}
	})
}

// What a poll of many fails with, each waiter gets with its own key.
func TestAFailedPollOfMany(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		other := newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: never})
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
			_, err := other.Lock(t.Context(), key)
			must(t, err)
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

// A poll that has no answer holds up no waiter for long: each reads its row alone, and then they
// poll together again.
func TestAPollWithoutAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _ := crowd(t, 20, 4*time.Millisecond)
		other := newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: never})
		lease, err := other.Lock(t.Context(), "released")
		must(t, err)
		got := make(chan time.Time, 1)
		go func() {
			lease, err := s.registry.Lock(t.Context(), "released")
			if err != nil {
				t.Error(err)
			}
			got <- time.Now()
			_ = lease.Unlock(t.Context())
		}()
		time.Sleep(5 * time.Second)
		stuck, answer := make(chan struct{}), make(chan struct{})
		var first, others atomic.Int64
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			switch {
			case m.Op != flaky.Query || m.Done:
			case first.Add(1) == 1:
				close(stuck)
				<-answer
			default:
				others.Add(1)
				time.Sleep(4 * time.Millisecond)
			}
			return nil
		})
		<-stuck
		time.Sleep(1500 * time.Millisecond)
		if n := others.Load(); n < 19 {
			t.Errorf("%d statements beside the one without an answer", n)
		}
		time.Sleep(2 * time.Second)
		released := time.Now()
		must(t, lease.Unlock(t.Context()))
		if took := (<-got).Sub(released); took > 200*time.Millisecond {
			t.Errorf("found after %v", took)
		}
		close(answer)
	})
}
