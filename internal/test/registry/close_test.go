package registry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// Close ends all leases before it talks to the database, and releases their rows together: on
// a server that does not answer four of them take no longer than one.
func TestClose_ReleasesTogether(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*sqllock.RepositoryOptions{
		"batches": nil, "each alone": {DisableBatching: true},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Serializable)
			s.repository = newRepository(t, s.pool, opts)
			one, _ := closeWithoutAnswer(s, 1)
			for _, n := range []int{4, 40} {
				took, ended := closeWithoutAnswer(s, n)
				if took > one+slack {
					t.Errorf("closing took %v with one lease and %v with %d", one, took, n)
				}
				check.Equal(t, "from Close to the end of the last lease", ended, 0)
			}
		})
	}
}

// closeWithoutAnswer returns how long it takes to close a registry with n leases while the
// database does not answer, and how long after that was asked for the last lease ended.
func closeWithoutAnswer(s *fixture, n int) (took, lastEnded time.Duration) {
	s.Helper()
	registry := newRegistry(s.T, s.repository, &sqllock.RegistryOptions{TTL: time.Second * 30, NoRenew: true})
	var contexts []context.Context
	for i := range n {
		lease := check.Value(obtain(s.T, registry, fmt.Sprint(n, i)).Lock(s.Context()))(s.T)
		contexts = append(contexts, lease.Context())
	}
	var last atomic.Int64
	stopAnswering(s)
	began := time.Now()
	for _, ctx := range contexts {
		context.AfterFunc(ctx, func() { last.Store(max(last.Load(), int64(time.Since(began)))) })
	}
	is(s, registry.Close(context.Background()), sqllock.ErrDatabase)
	took = time.Since(began)
	waitUntilCallsFail(s)
	return took, time.Duration(last.Load())
}

// A row that a statement on its way creates after Close would keep the lock taken for a
// time-to-live, because the process is about to end.
func TestClose_WaitsForAcquisitions(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]sqllock.RepositoryOptions{
		"batches": {}, "each alone": {DisableBatching: true},
	} {
		for _, cancelled := range []bool{false, true} {
			runInBubble(t, fmt.Sprintf("%s/%v", name, cancelled), func(t *testing.T) {
				s := newPlainFixture(t, opts)
				late := holdBack(s, flaky.Query)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				locked := check.Begin(func() error { return check.ErrorOf(s.lock.Lock(ctx)) })
				<-late.reached
				if cancelled { // the usual way to end: first all work, then the registry
					cancel()
					is(t, <-locked, context.Canceled)
				}
				closed := check.Begin(func() error { return s.registry.Close(t.Context()) })
				time.Sleep(3 * time.Second)
				synctest.Wait()
				check.Equal(t, "calls of Close that returned while an acquisition was under way", len(closed), 0)
				close(late.let)
				must(t, <-closed)
				if !cancelled {
					is(t, <-locked, sqllock.ErrClosed)
				}
				var rows int
				must(t, s.db.DB.Get(&rows, "SELECT COUNT(*) FROM INT_LOCK"))
				check.Equal(t, "rows left", rows, 0)
			})
		}
	}
}

// Of a server that does not answer Close is done after ten seconds, as documented, whatever was under way;
// and when its context ends. It says so.
func TestClose_TimesOut(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]time.Duration{"by itself": 0, "by its context": 2 * time.Second} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Serializable)
			stopAnswering(s)
			locked := check.Begin(func() error { return check.ErrorOf(s.lock.Lock(t.Context())) })
			time.Sleep(4 * time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			most := 11 * time.Second
			if limit > 0 {
				ctx, cancel = context.WithTimeout(ctx, limit)
				defer cancel()
				most = limit + slack
			}
			began := time.Now()
			is(t, s.registry.Close(ctx), sqllock.ErrDatabase)
			check.Takes(t, "Close", began, 0, most)
			is(t, <-locked, sqllock.ErrClosed)
			waitUntilCallsFail(s)
		})
	}
}

// Nor does a database hold Close up that answers each statement that others write, as SQLite does.
func TestClose_GivesUpWhileOthersWrite(t *testing.T) {
	t.Parallel()
	check.Long(t)
	for name, leave := range map[string]func(*fixture, *sqllock.Lease){
		"leases": func(s *fixture, _ *sqllock.Lease) { try(s.T, obtain(s.T, s.registry, "kept").WithMinHold(time.Hour)) },
		"a row that is left": func(s *fixture, lease *sqllock.Lease) {
			s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
			is(s, lease.Unlock(s.Context()), sqllock.ErrDatabase)
		},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Serializable)
			leave(s, held(s))
			s.connector.Follow(func(context.Context, flaky.Moment) error { return busy{} })
			ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
			defer cancel()
			began := time.Now()
			if err := s.registry.Close(ctx); !errors.Is(err, sqllock.ErrDatabase) || !errors.As(err, new(busy)) {
				t.Error(err)
			}
			check.Takes(t, "Close", began, 0, ttl+slack)
			s.connector.Follow(nil)
			must(t, s.registry.Close(t.Context()))
		})
	}
}

// A job that is running when its instance closes, or has just run, does not run again on another one
// before its minimum hold has passed.
func TestClose_KeepsRowsOfMinimumHolds(t *testing.T) {
	t.Parallel()
	const minHold = ttl / 2
	for name, close := range map[string]func(*fixture, *sqllock.Lease){
		"while the job runs": func(s *fixture, _ *sqllock.Lease) { must(s.T, s.registry.Close(s.Context())) },
		"while the job's own statement is on its way": func(s *fixture, lease *sqllock.Lease) {
			late, unlocked := holdBack(s, flaky.Exec), make(chan error, 1)
			go func() { unlocked <- lease.Unlock(s.Context()) }()
			<-late.reached
			must(s.T, s.registry.Close(s.Context()))
			close(late.let)
			is(s, <-unlocked, sqllock.ErrClosed)
			s.connector.Follow(nil)
		},
		"while a renewal is on its way": func(s *fixture, lease *sqllock.Lease) {
			late, renewed := holdBack(s, flaky.Exec), make(chan error, 1)
			go func() { renewed <- lease.Renew(s.Context()) }()
			<-late.reached
			closed := check.Begin(func() error { return s.registry.Close(s.Context()) })
			synctest.Wait()
			close(late.let)
			must(s.T, <-closed)
			is(s, <-renewed, sqllock.ErrClosed)
			s.connector.Follow(nil)
		},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Autocommit)
			began := time.Now()
			lease := check.Value(s.lock.WithMinHold(minHold).TryLock(t.Context()))(t)
			time.Sleep(minHold / 4)
			close(s, lease)
			rival := obtain(t, newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: ttl, NoRenew: true}), "k")
			next := check.Value(rival.TryLockFor(t.Context(), ttl))(t)
			check.Takes(t, "the minimum hold", began, minHold, minHold+slack)
			must(t, next.Unlock(t.Context()))
		})
	}
}

// Many of them are kept by few statements. A Close that comes again does not delete the rows that the first
// one could not keep: they stay as after a crash.
func TestClose_KeepsManyMinimumHoldsTogether(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		runInBubble(t, fmt.Sprint("outage ", fails), func(t *testing.T) {
			const leases, minHold = 600, ttl / 2
			s := newFixture(t, sqllock.Autocommit)
			for i := range leases {
				must(t, check.ErrorOf(obtain(t, s.registry, fmt.Sprint(i)).WithMinHold(minHold+time.Duration(i)).TryLock(t.Context())))
			}
			s.connector.Follow(nil)
			if fails {
				s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
				is(t, s.registry.Close(t.Context()), sqllock.ErrDatabase, errGone)
				s.connector.Follow(nil)
			}
			must(t, s.registry.Close(t.Context()))
			if n := s.connector.Count(); n > 6 {
				t.Errorf("%d rows were kept by %d statements", leases, n)
			}
			rows := check.Value(s.repository.List(t.Context()))(t)
			check.Equal(t, "rows left", len(slices.DeleteFunc(rows, func(row sqllock.Row) bool { return row.Left < minHold/2 })), leases)
		})
	}
}

// Of two calls of Close at a time the patient one releases what the other one leaves, and only then closes the
// pool, whichever of them comes first.
func TestClose_TwoAtATime(t *testing.T) {
	t.Parallel()
	for name, hastyFirst := range map[string]bool{"a hasty first": true, "a hasty second": false} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Serializable)
			var closed atomic.Int64
			r := newRegistry(t, newRepository(t, s.pool, &sqllock.RepositoryOptions{DisableBatching: true}), &sqllock.RegistryOptions{
				NoRenew: true, TTL: ttl, OnClose: func() error {
					closed.Add(1)
					rows, err := s.repository.List(t.Context())
					if err != nil || len(rows) > 0 {
						t.Errorf("closed with %d rows, %v", len(rows), err)
					}
					return nil
				},
			})
			for i := range 20 {
				tryKey(t, r, fmt.Sprint(i))
			}
			s.delay(10 * time.Millisecond)
			hasty, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
			defer cancel()
			first, second := t.Context(), hasty
			if hastyFirst {
				first, second = hasty, t.Context()
			}
			ended := check.Begin(func() error { return r.Close(first) })
			synctest.Wait()
			impatient, patient := r.Close(second), error(nil)
			if hastyFirst {
				impatient, patient = <-ended, impatient
			} else {
				check.Equal(t, "pools that the hasty one has closed", closed.Load(), 0)
				patient = <-ended
			}
			must(t, patient)
			if !errors.Is(impatient, context.DeadlineExceeded) || closed.Load() != 1 {
				t.Errorf("the hasty one: %v; OnClose was called %d times", impatient, closed.Load())
			}
			s.connector.Follow(nil)
		})
	}
}

// OnClose has no more time than Close.
func TestClose_LimitsOnClose(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		r := newRegistry(t, newRepository(t, s.pool, nil), &sqllock.RegistryOptions{OnClose: func() error {
			time.Sleep(time.Minute)
			return nil
		}, NoRenew: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := r.Close(ctx); !errors.Is(err, sqllock.ErrDatabase) || time.Since(began) > 10*time.Second {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Minute) // it ends
	})
}

// What OnClose says is an error of the database already, if it closes the pools of Open and
// the server does not answer.
func TestClose_SaysOnceThatTheDatabaseFailed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		r, err := sqllock.NewRegistry(newRepository(t, s.pool, nil), &sqllock.RegistryOptions{OnClose: func() error {
			return fmt.Errorf("%w: close: %w for 3s", sqllock.ErrDatabase, bounded.ErrNoAnswer)
		}, NoRenew: true})
		must(t, err)
		err = r.Close(t.Context())
		is(t, err, sqllock.ErrDatabase, bounded.ErrNoAnswer)
		if strings.Count(err.Error(), sqllock.ErrDatabase.Error()) != 1 {
			t.Error(err)
		}
	})
}

// A caller waits a second for the deletion of a row that it may have left, and the statement may have no answer for longer. Close
// waits for it: nothing is under way once it has returned.
func TestClose_AwaitsReleasesThatAreLeft(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		var committing atomic.Bool
		var underWay atomic.Int32
		s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
			if m.Op == flaky.Commit {
				committing.Store(true)
			}
			if m.Done || !committing.Load() {
				return nil
			}
			underWay.Add(1)
			defer underWay.Add(-1)
			<-ctx.Done()
			return ctx.Err()
		})
		is(t, check.ErrorOf(s.lock.TryLock(t.Context())), sqllock.ErrDatabase)
		check.Equal(t, "statements under way after the try", underWay.Load(), 1)
		s.connector.Follow(nil)
		must(t, s.registry.Close(t.Context()))
		check.Equal(t, "statements under way after Close", underWay.Load(), 0)
	})
}

// Close reports the rows that it could not release, also of leases that have ended before, and tries again
// when it is called again.
func TestClose_AgainAfterAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		lease, unlocked := held(s), obtain(t, s.registry, "unlocked")
		early := try(t, unlocked)
		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		is(t, early.Unlock(t.Context()), sqllock.ErrDatabase)
		lockKey := check.Value(s.repository.LockKey("unlocked"))(t)
		if err := s.registry.Close(t.Context()); !errors.Is(err, sqllock.ErrDatabase) || !errors.Is(err, errGone) || !strings.Contains(err.Error(), lockKey) {
			t.Error(err)
		}
		is(t, context.Cause(lease.Context()), sqllock.ErrClosed)
		s.connector.Follow(nil)
		must(t, s.registry.Close(t.Context()))
		is(t, check.ErrorOf(s.registry.Obtain("k")), sqllock.ErrClosed)
		is(t, check.ErrorOf(s.registry.LeaseFrom(lease.Context(), "k")), sqllock.ErrClosed)
		is(t, check.ErrorOf(s.registry.DeleteExpired(t.Context())), sqllock.ErrClosed)
		is(t, lease.Unlock(t.Context()), sqllock.ErrClosed)
		check.Equal(t, "rows", len(check.Value(s.repository.List(t.Context()))(t)), 0)
	})
}

// A curious context asks the registry whenever it is asked itself.
type curious struct {
	context.Context
	registry *sqllock.Registry
}

func (c curious) Done() <-chan struct{} {
	c.registry.Held()
	return c.Context.Done()
}

// The context that a waiter came with may be a lease's, which looks after its lease when
// asked.
func TestClose_HoldsNoMutexWhileItEndsWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := migrated(t).DB
		r := newRegistry(t, newRepository(t, db, nil), nil)
		lease := locked(t, obtain(t, newRegistry(t, newRepository(t, db, nil), nil), "k"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waiting := check.Begin(func() error { return check.ErrorOf(obtain(t, r, "k").Lock(curious{ctx, r})) }) //nolint:contextcheck // it is made from ctx
		synctest.Wait()
		closed := check.Begin(func() error { return r.Close(t.Context()) })
		for range 2 {
			select {
			case err := <-waiting:
				is(t, err, sqllock.ErrClosed)
			case err := <-closed:
				must(t, err)
			case <-time.After(10 * time.Second):
				t.Fatal("hangs")
			}
		}
		must(t, lease.Unlock(t.Context()))
	})
}

// Close waits for the statement that trims: nothing of a registry runs on after that.
func TestClose_WaitsForTheTrim(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		var begun, ended atomic.Bool
		s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
			if end, limited := ctx.Deadline(); limited && time.Until(end) <= time.Second { // all others have longer
				begun.Store(true)
				time.Sleep(300 * time.Millisecond)
				ended.Store(m.Done)
			}
			return nil
		})
		for range 1100 {
			must(t, held(s).Unlock(t.Context()))
			if begun.Load() {
				break
			}
		}
		must(t, s.registry.Close(t.Context()))
		if !begun.Load() || !ended.Load() {
			t.Error("begun:", begun.Load(), "ended:", ended.Load())
		}
	})
}
