package registry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/observe"
)

// A withoutLease context does not carry the lease that it is made from.
type withoutLease struct{ context.Context }

func (c withoutLease) Value(key any) any {
	if fmt.Sprintf("%T", key) == "engine.useKey" {
		return nil
	}
	return c.Context.Value(key)
}

// TestObserver_SlowDelaysItsCallerAlone has LeaseEnd take a minute in Unlock.
func TestObserver_SlowDelaysItsCallerAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, other, _ := observed(t, sqllock.RegistryOptions{Observers: []*observe.Observer{{
			LeaseEnd: func(context.Context, observe.LeaseEnd) { time.Sleep(time.Minute) },
		}}, NoRenew: true})
		lease := held(s)
		done := make(chan time.Time)
		began := time.Now()
		go func() {
			is(t, lease.Unlock(t.Context()), nil)
			done <- time.Now()
		}()
		synctest.Wait()
		must(t, held(other).Unlock(t.Context()))
		must(t, check.ErrorOf(s.lock.TryLock(t.Context())))
		check.Equal(t, "Unlock took", (<-done).Sub(began), time.Minute)
	})
}

// TestObserver_SlowKeepsNoLeaseFromBeingRenewed has LeaseEnd take most of a time-to-live when a renewal
// finds one of many rows gone.
func TestObserver_SlowKeepsNoLeaseFromBeingRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _, r := observed(t, sqllock.RegistryOptions{TTL: renewalTTL, Observers: []*observe.Observer{{
			LeaseEnd: func(_ context.Context, e observe.LeaseEnd) {
				if e.Key == "gone" {
					time.Sleep(renewalTTL * 8 / 10)
				}
			},
		}}})
		for i := range 20 {
			must(t, check.ErrorOf(s.registry.Lock(t.Context(), fmt.Sprint(i))))
		}
		gone := check.Value(s.registry.Lock(t.Context(), "gone"))(t)
		deleted, err := s.repository.Delete(t.Context(), "gone", gone.Holder())
		if must(t, err); !deleted {
			t.Fatal("the row is still there")
		}
		time.Sleep(3 * renewalTTL)
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range r.ends {
			if e.Key != "gone" {
				t.Errorf("lost %+v", e)
			}
		}
		if n := len(s.registry.Held()); n != 20 || len(r.ends) != 1 {
			t.Errorf("%d locks are held, %d ends", n, len(r.ends))
		}
	})
}

// Observers may close the registry: LeaseEnd when a renewal finds the row gone, and Renewal, which is what to
// do when renewals fail.
func TestObserver_MayClose(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"LeaseEnd", "Renewal"} {
		runInBubble(t, name, func(t *testing.T) {
			closed := make(chan error, 1)
			var s *fixture
			var took time.Duration
			closes := func(ctx context.Context) {
				began := time.Now()
				err := s.registry.Close(context.WithoutCancel(ctx))
				took = time.Since(began)
				closed <- err
			}
			o := &observe.Observer{LeaseEnd: func(ctx context.Context, e observe.LeaseEnd) {
				if e.Reason.Lost() {
					closes(ctx)
				}
			}}
			want := []string{"acquired", "acquired", "closed", "start", "start", "taken"}
			if name == "Renewal" {
				o = &observe.Observer{Renewal: func(ctx context.Context, _ observe.Renewal) { closes(ctx) }}
				want = []string{"acquired", "acquired", "closed", "closed", "start", "start"}
			}
			s, _, r := observed(t, sqllock.RegistryOptions{TTL: renewalTTL, Observers: []*observe.Observer{o}})
			lease := held(s)
			must(t, check.ErrorOf(s.registry.Lock(t.Context(), "other")))
			if name == "LeaseEnd" {
				must(t, check.ErrorOf(s.repository.Delete(t.Context(), "k", lease.Holder())))
			}
			if err := <-closed; err != nil || took > 0 {
				t.Errorf("Close took %v: %v", took, err)
			}
			synctest.Wait()
			r.sort() // the other lease ends within Close
			r.expect(t, want...)
		})
	}
}

// A record is what an observer is told, in order: "start", an outcome, or the reason for an end.
type record struct {
	mu       sync.Mutex
	texts    []string
	answers  []observe.AcquireEnd
	ends     []observe.LeaseEnd
	renewals []observe.Renewal
}

func (r *record) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, text)
}

func (r *record) observer() *observe.Observer {
	return &observe.Observer{
		Acquire: func(ctx context.Context, e observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
			r.note("start")
			return ctx, func(end observe.AcquireEnd) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.texts, r.answers = append(r.texts, string(end.Outcome)), append(r.answers, end)
				if end.AcquireStart != e {
					panic("another start")
				}
			}
		},
		LeaseEnd: func(_ context.Context, e observe.LeaseEnd) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.texts, r.ends = append(r.texts, string(e.Reason)), append(r.ends, e)
		},
		Renewal: func(_ context.Context, e observe.Renewal) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.renewals = append(r.renewals, e)
		},
	}
}

// expect compares what was told since the last call, and returns the last answer and end.
func (r *record) expect(t *testing.T, want ...string) (answer observe.AcquireEnd, end observe.LeaseEnd) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	check.Same(t, "told", r.texts, want)
	if n := len(r.answers); n > 0 {
		answer = r.answers[n-1]
	}
	if n := len(r.ends); n > 0 {
		end = r.ends[n-1]
	}
	r.texts, r.answers, r.ends = nil, nil, nil
	return answer, end
}

func (r *record) sort() {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.texts)
}

// observed returns a fixture whose registry has an observer, beside another process.
func observed(t *testing.T, opts sqllock.RegistryOptions) (s, other *fixture, r *record) {
	t.Helper()
	other, r = newFixture(t, sqllock.Autocommit), new(record)
	s = other.another(sqllock.Autocommit)
	if opts.TTL == 0 {
		opts.TTL = ttl
	}
	opts.IdleBetweenTries = 100 * time.Millisecond
	opts.Observers = append(opts.Observers, r.observer())
	s.registry = newRegistry(t, s.repository, &opts)
	s.lock = obtain(t, s.registry, "k")
	return s, other, r
}

func TestObserver_Acquisition(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _, r := observed(t, sqllock.RegistryOptions{NoRenew: true})
		lease := held(s)
		a, _ := r.expect(t, "start", "acquired")
		if a.Key != "k" || a.TTL != ttl || a.Wait != 0 || a.Holder != lease.Holder() || a.Token != lease.Token() || a.Attempts != 1 ||
			a.Polls != 0 || a.HeldBy != "" || a.Reentered || a.HandedOn || a.Batched || a.Err != nil {
			t.Errorf("%+v", a)
		}
		inner := check.Value(s.lock.Lock(lease.Context()))(t)
		if a, _ := r.expect(t, "start", "acquired"); !a.Reentered || a.Token != lease.Token() || a.Wait >= 0 || a.Attempts != 0 || a.Queued != 0 {
			t.Errorf("%+v", a)
		}
		must(t, inner.Unlock(t.Context()))
		r.expect(t)
		time.Sleep(time.Second)
		must(t, lease.Unlock(t.Context()))
		must(t, lease.Unlock(t.Context()))
		_, e := r.expect(t, "unlocked")
		if e.Key != "k" || e.Holder != lease.Holder() || e.Token != lease.Token() || e.Held != time.Second || e.Err != nil ||
			e.Left != ttl-500*time.Millisecond-time.Second {
			t.Errorf("%+v", e)
		}
	})
}

// TestObserver_FailedAcquisitions has each outcome once.
func TestObserver_FailedAcquisitions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, other, r := observed(t, sqllock.RegistryOptions{NoRenew: true})
		holder := held(other)
		expect := func(outcome string, err error) observe.AcquireEnd {
			t.Helper()
			a, _ := r.expect(t, "start", outcome)
			if !errors.Is(a.Err, err) || a.Holder != "" || a.Token != 0 {
				t.Errorf("%+v, want %v", a, err)
			}
			return a
		}
		_, err := s.lock.TryLock(t.Context())
		if a := expect("held", sqllock.ErrNotAcquired); a.Err != err || a.HeldBy != holder.Holder() || a.Attempts != 1 { //nolint:errorlint // the very error
			t.Errorf("%+v", a)
		}
		_, _ = s.lock.TryLockFor(t.Context(), time.Second)
		if a := expect("timeout", sqllock.ErrNotAcquired); a.Took != time.Second || a.Queued != 0 || a.Polls < 10 || a.HeldBy != holder.Holder() {
			t.Errorf("%+v", a)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = s.lock.Lock(ctx)
		expect("timeout", context.DeadlineExceeded)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, _ = s.lock.Lock(ctx)
		expect("cancelled", context.Canceled)

		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		_, _ = s.lock.Lock(t.Context())
		expect("error", sqllock.ErrDatabase)
		s.connector.Follow(nil)

		is(t, check.ErrorOf(s.lock.WithTTL(time.Nanosecond).Lock(t.Context())), sqllock.ErrInvalid)
		r.expect(t)

		must(t, holder.Unlock(t.Context()))
		lease := held(s)
		must(t, check.ErrorOf(s.db.DB.ExecContext(t.Context(), "DELETE FROM INT_LOCK")))
		r.expect(t, "start", "acquired")
		_, _ = s.lock.Lock(lease.Context())
		if a, e := r.expect(t, "start", "taken", "lost"); !errors.Is(a.Err, sqllock.ErrLockLost) || !errors.Is(e.Err, sqllock.ErrLockLost) {
			t.Errorf("%+v, %+v", a, e)
		}
		must(t, s.registry.Close(t.Context()))
		_, _ = s.lock.Lock(t.Context())
		expect("cancelled", sqllock.ErrClosed)
	})
}

// TestObserver_Queue has callers of one process wait for each other, and hand the row on.
func TestObserver_Queue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _, r := observed(t, sqllock.RegistryOptions{HandOff: true, NoRenew: true})
		first := held(s)
		r.expect(t, "start", "acquired")
		got := make(chan *sqllock.Lease)
		go func() {
			lease, err := s.lock.Lock(t.Context())
			is(t, err, nil)
			got <- lease
		}()
		synctest.Wait()
		_, _ = s.lock.TryLock(t.Context())
		if a, _ := r.expect(t, "start", "start", "held"); a.HeldBy != first.Holder() {
			t.Errorf("%+v", a)
		}
		time.Sleep(500 * time.Millisecond)
		must(t, first.Unlock(t.Context()))
		lease := <-got
		synctest.Wait()
		r.sort() // the two callers report at the same time
		a, e := r.expect(t, "acquired", "handed_on")
		if !a.HandedOn || a.Queued != 500*time.Millisecond || a.Attempts != 0 || a.HeldBy != first.Holder() || a.Token != lease.Token() {
			t.Errorf("%+v", a)
		}
		if e.Token != first.Token() || e.Err != nil {
			t.Errorf("%+v", e)
		}
		must(t, lease.Unlock(t.Context()))
		r.expect(t, "unlocked")
	})
}

// TestObserver_CallerThatHasGivenUp has a caller get the row of a lease with which its own context ends: it
// has given up, and releases the row. Its minimum hold does not count, because it never held the lock.
func TestObserver_CallerThatHasGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, other, r := observed(t, sqllock.RegistryOptions{HandOff: true, NoRenew: true})
		first := held(s)
		gaveUp := check.Begin(func() error { return check.ErrorOf(s.lock.WithMinHold(ttl).Lock(withoutLease{first.Context()})) })
		synctest.Wait()
		r.expect(t, "start", "acquired", "start")
		must(t, first.Unlock(t.Context()))
		is(t, <-gaveUp, sqllock.ErrNotAcquired, context.Canceled)
		synctest.Wait()
		r.sort() // the two callers report at the same time
		r.expect(t, "cancelled", "handed_on")
		must(t, held(other).Unlock(t.Context()))
	})
}

// TestObserver_EndsOfLeases has a lease end in each way.
func TestObserver_EndsOfLeases(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _, r := observed(t, sqllock.RegistryOptions{NoRenew: true})
		expect := func(reason string, err error) {
			t.Helper()
			synctest.Wait()
			if _, e := r.expect(t, "start", "acquired", reason); !errors.Is(e.Err, err) || (e.Err == nil) != (err == nil) {
				t.Errorf("%s: %+v", reason, e)
			}
		}
		deleteRows := func() {
			must(t, check.ErrorOf(s.db.DB.ExecContext(t.Context(), "DELETE FROM INT_LOCK")))
		}
		lease := held(s)
		<-lease.Context().Done()
		expect("expired", sqllock.ErrLockLost)
		_ = lease.Unlock(t.Context())
		r.expect(t)
		deleteRows() // it lasts a moment longer

		lease = held(s)
		deleteRows()
		_ = lease.Renew(t.Context())
		expect("taken", sqllock.ErrLockLost)

		lease = held(s)
		deleteRows()
		_ = lease.Unlock(t.Context())
		expect("taken", sqllock.ErrLockLost)

		lease = held(s)
		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		err := lease.Unlock(t.Context())
		s.connector.Follow(nil)
		expect("unlocked", sqllock.ErrDatabase)
		is(t, err, sqllock.ErrDatabase)

		lease = check.Value(s.lock.WithMinHold(time.Second).Lock(t.Context()))(t)
		must(t, lease.Unlock(t.Context()))
		expect("unlocked", nil)

		time.Sleep(2 * time.Second)
		held(s)
		must(t, s.registry.Close(t.Context()))
		expect("closed", sqllock.ErrClosed)
	})
}

// TestObserver_Renewals has renewals succeed, fail, and find a row gone.
func TestObserver_Renewals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const third = renewalTTL / 3
		s, _, r := observed(t, sqllock.RegistryOptions{TTL: renewalTTL})
		lease := held(s)
		must(t, check.ErrorOf(obtain(t, s.registry, "other").Lock(t.Context())))
		next := func(after time.Duration) observe.Renewal {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			check.Equal(t, "renewals", len(r.renewals), 1)
			e := r.renewals[0]
			r.renewals = nil
			return e
		}
		left := renewalTTL - 500*time.Millisecond - third
		if e := next(third); e != (observe.Renewal{TTL: renewalTTL, Leases: 2, Left: left}) {
			t.Errorf("%+v, want %v left", e, left)
		}
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Done {
				return nil
			}
			time.Sleep(time.Second)
			return errGone
		})
		if e := next(third + time.Second); !errors.Is(e.Err, sqllock.ErrDatabase) || e.Left != left-time.Second || e.Took != time.Second || e.Leases != 2 {
			t.Errorf("%+v", e)
		}
		s.connector.Follow(nil)
		must(t, check.ErrorOf(s.repository.Delete(t.Context(), "k", lease.Holder())))
		if e := next(renewalTTL / 15); e.Err != nil || e.Lost != 1 || e.Leases != 2 || e.Left != left-time.Second-renewalTTL/15 {
			t.Errorf("%+v", e)
		}
		if e := next(third); e.Leases != 1 || e.Lost != 0 {
			t.Errorf("%+v", e)
		}
		r.expect(t, "start", "acquired", "start", "acquired", "taken")
	})
}

type traceKey struct{}

// TestObserver_ContextOfStatementsAndLease has two observers put a value into the context.
// The release has that of Unlock.
func TestObserver_ContextOfStatementsAndLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var ends []string
		traced := func(name string) *observe.Observer {
			return &observe.Observer{
				Acquire: func(ctx context.Context, _ observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
					path, _ := ctx.Value(traceKey{}).(string)
					return context.WithValue(ctx, traceKey{}, path+"/"+name), func(observe.AcquireEnd) { ends = append(ends, name) }
				},
				LeaseEnd: func(ctx context.Context, _ observe.LeaseEnd) {
					check.Equal(t, "LeaseEnd with", ctx.Value(traceKey{}), "/a/b")
				},
			}
		}
		a, b := traced("a"), traced("b")
		nothing := &observe.Observer{
			Acquire: func(context.Context, observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
				return nil, nil
			},
		}
		s, _, _ := observed(t, sqllock.RegistryOptions{Observers: []*observe.Observer{a, nil, nothing, b, a}, NoRenew: true})
		check.Equal(t, "observers", len(s.registry.Observers()), 4)
		var mu sync.Mutex
		var seen []any
		s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
			mu.Lock()
			defer mu.Unlock()
			if !m.Done {
				seen = append(seen, ctx.Value(traceKey{}))
			}
			return nil
		})
		lease := held(s)
		if path := lease.Context().Value(traceKey{}); path != "/a/b" || !slices.Equal(ends, []string{"b", "a"}) {
			t.Errorf("the lease has %v; the ends are %v", path, ends)
		}
		must(t, lease.Unlock(context.WithValue(t.Context(), traceKey{}, "unlock")))
		if len(seen) < 2 || seen[0] != "/a/b" || seen[len(seen)-1] != "unlock" {
			t.Errorf("the statements have %v", seen)
		}
	})
}

// TestObserver_Batch has a batch of several callers, whose statement has the context of none of them.
func TestObserver_Batch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _, r := observed(t, sqllock.RegistryOptions{NoRenew: true})
		first, held := make(chan struct{}), false
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.N == 1 && !m.Done {
				held = true
				<-first // all others are batched behind it
			}
			return nil
		})
		var trying sync.WaitGroup
		for i := range 4 {
			lock := obtain(t, s.registry, fmt.Sprint("key ", i))
			trying.Go(func() {
				check.Is(t, check.ErrorOf(lock.TryLock(t.Context())), nil)
			})
			synctest.Wait()
		}
		if !held {
			t.Fatal("no statement is in flight")
		}
		close(first)
		trying.Wait()
		batched := 0
		for _, a := range r.answers {
			if a.Batched {
				batched++
			}
		}
		if batched != 3 {
			t.Errorf("%d of %d were batched", batched, len(r.answers))
		}
	})
}
