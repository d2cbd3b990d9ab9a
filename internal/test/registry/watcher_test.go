package registry_test

import (
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/poll"
	"github.com/sqllock/sqllock/internal/test/check"
)

// A watcher reports what a test wants.
type watcher struct {
	mu      sync.Mutex
	reports []func(poll.Report) time.Duration
	begun   int
}

// Watch implements poll.Watcher.
func (w *watcher) Watch(report func(poll.Report) time.Duration) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	w.reports = append(w.reports, report)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reports = w.reports[1:]
	}
}

func (w *watcher) report(r poll.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, report := range w.reports {
		report(r)
	}
}

// state returns how many watch, and how many have begun to.
func (w *watcher) state() [2]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return [2]int{len(w.reports), w.begun}
}

// A caller that waits, and no other, is told of writes: then it finds a release at once, and without a report at its next poll.
func TestWait_FollowsWrites(t *testing.T) {
	t.Parallel()
	for name, reported := range map[string]bool{"reported": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newFixture(t, sqllock.Autocommit)
				w := &watcher{}
				repository := check.Value(sqllock.NewRepository(poll.WithWatcher(t.Context(), w), s.pool, s.db.Dialect, &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit}))(t)
				const idle = time.Minute
				lock := obtain(t, newRegistry(t, repository, &sqllock.RegistryOptions{IdleBetweenTries: idle}), "k")
				must(t, check.Value(lock.Lock(t.Context()))(t).Unlock(t.Context()))
				check.Equal(t, "watches of a lock that is free", w.state(), [2]int{0, 0})

				must(t, check.ErrorOf(s.repository.Acquire(t.Context(), "k", "rival", time.Hour)))
				is(t, check.ErrorOf(lock.TryLock(t.Context())), sqllock.ErrNotAcquired)
				check.Equal(t, "watches of a try", w.state(), [2]int{0, 0})
				released := make(chan time.Time, 1)
				go func() {
					time.Sleep(10 * time.Minute)
					check.Equal(t, "watches of a wait", w.state(), [2]int{1, 1})
					if reported {
						w.report(poll.Written)
					}
					released <- time.Now()
					check.Value(s.repository.Delete(t.Context(), "k", "rival"))(t)
				}()
				lease := check.Value(lock.Lock(t.Context()))(t)
				switch took := time.Since(<-released); {
				case reported && took > 10*time.Millisecond, took > idle:
					t.Errorf("found after %v", took)
				}
				must(t, lease.Unlock(t.Context()))
				check.Equal(t, "watches after it", w.state(), [2]int{0, 1})
			})
		})
	}
}

// The end of a lease is no write. A caller that polls seldom, since reports have been seen to work, finds it as soon as one that polls
// often.
func TestWait_FindsTheEndOfALeaseWhileNothingIsWritten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		w := &watcher{}
		repository := check.Value(sqllock.NewRepository(poll.WithWatcher(t.Context(), w), s.pool, s.db.Dialect, &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit}))(t)
		const idle = time.Minute
		lock := obtain(t, newRegistry(t, repository, &sqllock.RegistryOptions{IdleBetweenTries: idle}), "k")
		const lasts = 2*poll.CalmShare*idle - 2*idle // it is over between two polls
		must(t, check.ErrorOf(s.repository.Acquire(t.Context(), "k", "rival", time.Hour)))
		over := make(chan time.Time, 1)
		go func() {
			time.Sleep(10 * time.Minute)
			w.report(poll.Written)
			check.Value(s.repository.Delete(t.Context(), "k", "rival"))(t)
			must(t, check.ErrorOf(s.repository.Acquire(t.Context(), "k", "other", lasts)))
			over <- time.Now().Add(lasts)
		}()
		lease := check.Value(lock.Lock(t.Context()))(t)
		if took := time.Since(<-over); took > time.Second {
			t.Errorf("found %v after its end", took)
		}
		must(t, lease.Unlock(t.Context()))
	})
}
