package sqllock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// patient returns a fixture whose waiters wait through outages.
func patient(t *testing.T) *fixture {
	t.Helper()
	s := newFixture(t, sqllock.Serializable)
	s.registry = newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: ttl, WaitThroughOutages: true})
	s.lock = obtain(t, s.registry, "k")
	return s
}

// outageFor has every operation fail for d, and counts those that are sent meanwhile.
func outageFor(s *fixture, d time.Duration) (sent *atomic.Int64) {
	sent = new(atomic.Int64)
	end := time.Now().Add(d)
	s.connector.Follow(func(context.Context, flaky.Moment) error {
		if time.Now().Before(end) {
			sent.Add(1)
			return errGone
		}
		return nil
	})
	return sent
}

// All waiters of a process outlast an outage, and none of them sends much.
func TestWaitersOutlastAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := patient(t)
		const outage = 20 * time.Second
		sent, began := outageFor(s, outage), time.Now()
		const waiters = 3
		done := make(chan error, waiters)
		for range waiters {
			go func() {
				done <- s.registry.ExecuteLocked(t.Context(), "k", func(context.Context) error { return nil })
			}()
		}
		for range waiters {
			must(t, <-done)
		}
		if took := time.Since(began); took < outage || took > outage+2*time.Second {
			t.Errorf("took %v", took)
		}
		// The first one tries once a second. An attempt may be several operations.
		if n := sent.Load(); n > 100 {
			t.Errorf("%d operations in an outage of %v", n, outage)
		}
	})
}

// A waiter that was polling a held lock goes on when the database is back.
func TestAPollingWaiterOutlastsAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := patient(t)
		holder, err := obtain(t, newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: 10 * time.Second}), "k").Lock(t.Context())
		must(t, err)
		acquired := make(chan *sqllock.Lease)
		go func() {
			lease, err := s.lock.Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			acquired <- lease
		}()
		time.Sleep(time.Second)
		outageFor(s, 5*time.Second)
		lease := <-acquired
		if lease == nil {
			return
		}
		if holder.Context().Err() == nil || lease.Token() <= holder.Token() {
			t.Errorf("token %d after %d, and the first holder's context: %v", lease.Token(), holder.Token(), holder.Context().Err())
		}
		must(t, lease.Unlock(t.Context()))
	})
}

// The end of the wait is an error of the database, with all that is known.
func TestTheEndOfAWaitInAnOutage(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	for name, wait := range map[string]func(*sqllock.JdbcLock, context.Context) error{
		"by its limit": func(l *sqllock.JdbcLock, ctx context.Context) error {
			_, err := l.TryLockFor(ctx, limit)
			return err
		},
		"by its context": func(l *sqllock.JdbcLock, ctx context.Context) error {
			limited, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			_, err := l.Lock(limited)
			if !errors.Is(err, context.DeadlineExceeded) {
				return errors.New("the context's error is missing")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := patient(t)
				outageFor(s, time.Hour)
				began := time.Now()
				err := wait(s.lock, t.Context())
				if took := time.Since(began); took < limit || took > limit+2*time.Second {
					t.Errorf("took %v", took)
				}
				if !errors.Is(err, sqllock.ErrDatabase) || !errors.Is(err, errGone) || errors.Is(err, sqllock.ErrNotAcquired) {
					t.Errorf("error %v", err)
				}
				if !strings.Contains(err.Error(), "(for 10s)") {
					t.Errorf("it does not say since when: %v", err)
				}
				s.connector.Follow(nil) // Close clears up
			})
		})
	}
}

// Callers behind a waiter in an outage do not know whether the lock is held either.
func TestTheQueueBehindAWaiterInAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := patient(t)
		outageFor(s, time.Hour)
		first := make(chan error, 1)
		go func() {
			_, err := s.lock.TryLockFor(t.Context(), 20*time.Second)
			first <- err
		}()
		time.Sleep(time.Second)
		_, single := s.lock.TryLock(t.Context())
		_, queued := s.lock.TryLockFor(t.Context(), 9*time.Second)
		for _, err := range []error{single, queued, <-first} {
			if !errors.Is(err, sqllock.ErrDatabase) || !errors.Is(err, errGone) || errors.Is(err, sqllock.ErrNotAcquired) {
				t.Errorf("error %v", err)
			}
		}
		if !strings.Contains(queued.Error(), "(for 10s)") {
			t.Errorf("it does not say since when: %v", queued)
		}
		_, err := s.lock.TryLockFor(t.Context(), 2*time.Second)
		if !strings.Contains(err.Error(), "(for 2s)") {
			t.Errorf("an outage that nobody waited in is remembered: %v", err)
		}
		s.connector.Follow(nil) // Close clears up
	})
}

// A caller that gets no answer ends the waits behind it, but not those that outlast it.
func TestWaitersOutlastASingleTryWithoutAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := patient(t)
		silence := time.Now().Add(20 * time.Second)
		s.connector.Follow(func(ctx context.Context, _ flaky.Moment) error {
			bounded.Sleep(ctx, time.Until(silence))
			return ctx.Err()
		})
		single := make(chan error, 1)
		go func() {
			_, err := s.lock.TryLock(t.Context())
			single <- err
		}()
		synctest.Wait()
		lease, err := s.lock.TryLockFor(t.Context(), time.Minute)
		must(t, err)
		must(t, lease.Unlock(t.Context()))
		if err := <-single; !errors.Is(err, sqllock.ErrDatabase) {
			t.Errorf("the single try: error %v", err)
		}
	})
}

// The end of a wait may cut off a statement, which is no outage, whatever the driver says then.
func TestAWaitThatEndsWithinAStatement(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := patient(t)
		opts := sqllock.RepositoryOptions{DisableBatching: true}
		registry := newRegistry(t, newRepository(t, s.pool, &opts), &sqllock.RegistryOptions{TTL: ttl, WaitThroughOutages: true})
		s.connector.Follow(func(ctx context.Context, _ flaky.Moment) error {
			if !bounded.Sleep(ctx, 300*time.Millisecond) {
				return errGone
			}
			return nil
		})
		for limit := 100 * time.Millisecond; limit < 900*time.Millisecond; limit += 100 * time.Millisecond {
			_, err := obtain(t, registry, limit.String()).TryLockFor(t.Context(), limit)
			if !errors.Is(err, sqllock.ErrNotAcquired) || errors.Is(err, sqllock.ErrDatabase) {
				t.Errorf("after %v: error %v", limit, err)
			}
		}
		s.connector.Follow(nil)
	})
}

// After the outage a wait that ends is a lock that is held.
func TestTheEndOfAWaitAfterAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := patient(t)
		holder, err := obtain(t, newRegistry(t, newRepository(t, s.db.DB, nil), nil), "k").Lock(t.Context())
		must(t, err)
		outageFor(s, 2*time.Second)
		_, err = s.lock.TryLockFor(t.Context(), 5*time.Second)
		if !errors.Is(err, sqllock.ErrNotAcquired) || errors.Is(err, sqllock.ErrDatabase) {
			t.Errorf("error %v", err)
		}
		must(t, holder.Unlock(t.Context()))
	})
}

// What is not to be waited for.
func TestWhatNoWaiterOutlasts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*fixture)
		do      func(*fixture) error
		want    error
	}{
		"a single try": {
			prepare: func(s *fixture) { outageFor(s, time.Hour) },
			do: func(s *fixture) error {
				_, err := s.lock.TryLock(s.Context())
				return err
			},
			want: errGone,
		},
		"a missing table": {
			prepare: func(s *fixture) { s.db.DB.MustExec("DROP TABLE INT_LOCK") },
			do: func(s *fixture) error {
				_, err := s.lock.Lock(s.Context())
				return err
			},
			want: sqllock.ErrSchema,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := patient(t)
				c.prepare(s)
				began := time.Now()
				if err := c.do(s); !errors.Is(err, c.want) || !errors.Is(err, sqllock.ErrDatabase) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("took %v", took)
				}
				s.connector.Follow(nil) // Close clears up
			})
		})
	}
}

func TestCloseEndsAWaitInAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := patient(t)
		outageFor(s, 20*time.Second)
		time.AfterFunc(10*time.Second, func() { _ = s.registry.Close(t.Context()) })
		began := time.Now()
		if _, err := s.lock.Lock(t.Context()); !errors.Is(err, sqllock.ErrClosed) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took > 12*time.Second {
			t.Errorf("took %v", took)
		}
		time.Sleep(20 * time.Second)
	})
}
