package registry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	shared "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/leader"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// A waitLog has the waits that were reported.
type waitLog struct {
	mu    sync.Mutex
	waits []observe.Wait
}

func (l *waitLog) observer() []*observe.Observer {
	return []*observe.Observer{{Waiting: func(_ context.Context, e observe.Wait) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waits = append(l.waits, e)
	}}}
}

func (l *waitLog) all() []observe.Wait {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waits
}

// A claim acquires a lock of a registry.
type claim func(context.Context, *sqllock.Registry) (*sqllock.Lease, error)

func lockOf(keys ...string) claim {
	return func(ctx context.Context, r *sqllock.Registry) (*sqllock.Lease, error) {
		lock, err := r.ObtainAll(keys...)
		if err != nil {
			return nil, err
		}
		return lock.Lock(ctx)
	}
}

func ofReaders(lock func(*rwlock.Lock, context.Context) (*sqllock.Lease, error)) claim {
	return func(ctx context.Context, r *sqllock.Registry) (*sqllock.Lease, error) {
		l, err := rwlock.New(r, "k")
		if err != nil {
			return nil, err
		}
		return lock(l, ctx)
	}
}

func permit(ctx context.Context, r *sqllock.Registry) (*sqllock.Lease, error) {
	s, err := semaphore.New(r, "k", 1)
	if err != nil {
		return nil, err
	}
	return s.Acquire(ctx, 1)
}

// campaign waits to lead.
func campaign(ctx context.Context, r *sqllock.Registry) (*sqllock.Lease, error) {
	e, err := leader.New(r, "k", nil)
	if err != nil {
		return nil, err
	}
	return nil, e.Run(ctx, func(context.Context, *sqllock.Lease) error { return errStop })
}

// TestALongWaitIsReported has three callers of a process wait for a lock that is held, by another process or by their own: one
// line for all of them, at growing intervals, until they do not wait any more.
func TestALongWaitIsReported(t *testing.T) {
	t.Parallel()
	check.Long(t)
	for name, test := range map[string]struct {
		hold, wait claim
		after      time.Duration
		reports    int // within two minutes
	}{
		"a lock":         {lockOf("k"), lockOf("k"), 0, 3},
		"a joint lock":   {lockOf("k"), lockOf("a", "k", "z"), 0, 3},
		"a semaphore":    {permit, permit, 0, 3},
		"a reader":       {ofReaders((*rwlock.Lock).Lock), ofReaders((*rwlock.Lock).RLock), 0, 3},
		"a writer":       {ofReaders((*rwlock.Lock).RLock), ofReaders((*rwlock.Lock).Lock), 0, 3},
		"a candidate":    {lockOf("k"), campaign, 0, 0},
		"after a minute": {lockOf("k"), lockOf("k"), time.Minute, 2},
		"never":          {lockOf("k"), lockOf("k"), -1, 0},
	} {
		for whose, own := range map[string]bool{"of another process": false, "of its own process": true} {
			runInBubble(t, name+" "+whose, func(t *testing.T) {
				var log waitLog
				other := newFixture(t, sqllock.Autocommit)
				waits := shared.NewRegistry(t, other.another(sqllock.Autocommit).repository, &sqllock.RegistryOptions{
					NoRenew: true, TTL: time.Hour, IdleBetweenTries: 10 * time.Second, ReportWaitAfter: test.after, Observers: log.observer(),
				})
				holds := shared.NewRegistry(t, other.repository, &sqllock.RegistryOptions{TTL: time.Hour, NoRenew: true})
				if own {
					holds = waits
				}
				lease := check.Value(test.hold(t.Context(), holds))(t)
				ctx, cancel := context.WithCancel(t.Context())
				var callers sync.WaitGroup
				for i := range 3 {
					callers.Go(func() {
						time.Sleep(time.Duration(i) * time.Second)
						_, _ = test.wait(ctx, waits)
					})
				}
				time.Sleep(2*time.Minute + 2*time.Second)
				reported := log.all()
				if len(reported) != test.reports {
					t.Errorf("%d reports, want %d: %+v", len(reported), test.reports, reported)
				}
				want := max(test.after, 30*time.Second)
				for _, e := range reported {
					if e.Key != "k" || e.Holder != lease.Holder() || e.Err != nil || e.Waited < want || e.Waited > want+2*time.Second {
						t.Errorf("%+v, want %v of %s", e, want, lease.Holder())
					}
					if strings.HasPrefix(name, "a lock") && !strings.Contains(e.Process, "pid ") {
						t.Errorf("no process in %+v", e)
					}
					want *= 2
				}
				cancel()
				callers.Wait()
				time.Sleep(time.Hour / 2)
				if len(log.all()) != test.reports {
					t.Errorf("reported after the wait: %+v", log.all())
				}
			})
		}
	}
}

// TestAWaitThroughAnOutageIsReported has the database fail while a caller waits.
func TestAWaitThroughAnOutageIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var log waitLog
		s := newFixture(t, sqllock.Autocommit)
		r := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: ttl, WaitThroughOutages: true, Observers: log.observer(), NoRenew: true})
		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		_, err := obtain(t, r, "k").TryLockFor(t.Context(), 40*time.Second)
		s.connector.Follow(nil)
		is(t, err, errGone)
		if all := log.all(); len(all) != 1 || all[0].Holder != "" {
			t.Errorf("%+v", all)
		} else {
			is(t, all[0].Err, errGone)
		}
	})
}

// TestEachKeyHasItsOwnReports has a caller wait for one lock, and later another one for a joint lock, of which another key is held
// meanwhile.
func TestEachKeyHasItsOwnReports(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var log waitLog
		s := newFixture(t, sqllock.Autocommit)
		r := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Hour, Observers: log.observer(), NoRenew: true})
		lease, other := tryKey(t, r, "a"), tryKey(t, r, "b")
		ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
		defer cancel()
		began := time.Now()
		plain := check.Begin(func() error { return check.ErrorOf(lockOf("a")(ctx, r)) })
		time.Sleep(10 * time.Second)
		joint := check.Begin(func() error { return check.ErrorOf(lockOf("b", "c")(ctx, r)) })
		time.Sleep(10 * time.Second)
		moved := tryKey(t, r, "c")
		must(t, other.Unlock(t.Context()))
		is(t, <-plain, context.DeadlineExceeded)
		is(t, <-joint, context.DeadlineExceeded)
		var got []string
		for _, e := range log.all() {
			got = append(got, e.Key+" "+e.Waited.Round(time.Second).String())
		}
		if want := []string{"a 30s", "c 30s", "a 1m0s"}; !slices.Equal(got, want) || time.Since(began) != 65*time.Second {
			t.Errorf("%q, want %q", got, want)
		}
		must(t, lease.Unlock(t.Context()))
		must(t, moved.Unlock(t.Context()))
	})
}

// TestShortWaitsAreNotReported has callers that each wait for less than half a minute keep a key contended for long.
func TestShortWaitsAreNotReported(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var log waitLog
		s := newFixture(t, sqllock.Autocommit)
		s.lock = obtain(t, newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: ttl, Observers: log.observer(), NoRenew: true}), "k")
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				for range 10 {
					lease := locked(t, s.lock)
					time.Sleep(20 * time.Second)
					must(t, lease.Unlock(t.Context()))
				}
			})
		}
		callers.Wait()
		check.Same(t, "all", log.all(), nil)
	})
}

var errAway = errors.New("it is away")

// TestALongWaitIsLoggedByDefault has an observer that is not told of waits. A registry whose keys are secrets logs
// what stands in the table, through an outage too.
//
//nolint:paralleltest // it sets the default logger
func TestALongWaitIsLoggedByDefault(t *testing.T) {
	const lockKey = "8ce4b16b-22b5-3894-aa86-c421e8759df3" // of k
	for secret, want := range map[bool]string{
		false: `level=WARN msg="sqllock: still waiting for a lock" key=k waited=30s held_by=`,
		true:  `level=WARN msg="sqllock: still waiting for a lock" key=` + lockKey + ` waited=30s held_by=`,
	} {
		var text bytes.Buffer
		before := slog.Default()
		t.Cleanup(func() { slog.SetDefault(before) })
		synctest.Test(t, func(t *testing.T) {
			s := newFixture(t, sqllock.Autocommit)
			r := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{
				NoRenew: true, TTL: time.Hour, Observers: []*observe.Observer{{}}, DisableNames: secret, WaitThroughOutages: true,
			})
			slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
			lease := tryKey(t, r, "k")
			is(t, check.ErrorOf(obtain(t, r, "k").TryLockFor(t.Context(), 40*time.Second)), sqllock.ErrNotAcquired)
			synctest.Wait() // for the goroutine that has logged
			if want := want + lease.Holder(); !strings.Contains(text.String(), want) {
				t.Errorf("%q, want %q", text.String(), want)
			}
			s.connector.Follow(func(context.Context, flaky.Moment) error { return errAway })
			defer s.connector.Follow(nil)
			text.Reset()
			is(t, check.ErrorOf(obtain(t, r, "other").TryLockFor(t.Context(), 40*time.Second)), sqllock.ErrDatabase)
			synctest.Wait()
			if logged := text.String(); !strings.Contains(logged, "it is away") || strings.Contains(logged, `other`) == secret {
				t.Errorf("an outage: %q", logged)
			}
			text.Reset()
			is(t, check.ErrorOf(obtainAll(t, r, "other", "another").TryLockFor(t.Context(), 40*time.Second)), sqllock.ErrDatabase)
			synctest.Wait()
			if logged := text.String(); !strings.Contains(logged, "it is away") || strings.Contains(logged, `other`) == secret {
				t.Errorf("an outage of a joint lock: %q", logged)
			}
		})
	}
}
