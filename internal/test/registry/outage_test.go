package registry_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// A detached context goes on after its deadline, as those do that callers wrote
// before there was context.WithoutCancel.
type detached struct {
	context.Context
	done chan struct{}
}

func (d detached) Done() <-chan struct{} { return d.done }

func (d detached) Err() error { return nil }

// A try ends although the context does not, whether the lock is held or the database does not answer.
func TestOutage_ContextThatOutlivesItsDeadline(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() chan struct{}{
		"NoChannel":             func() chan struct{} { return nil },
		"AChannelThatStaysOpen": func() chan struct{} { return make(chan struct{}) },
	} {
		for _, answers := range []bool{true, false} {
			runInBubble(t, fmt.Sprint(name, "/", answers), func(t *testing.T) {
				s := newPlainFixture(t, sqllock.RepositoryOptions{DisableBatching: true})
				want := sqllock.ErrNotAcquired
				if answers {
					lease := held(s)
					defer func() { must(t, lease.Unlock(t.Context())) }()
				} else {
					want = sqllock.ErrDatabase
					stopAnswering(s)
					defer waitUntilCallsFail(s)
				}
				parent, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Second))
				defer cancel()
				if answers {
					<-parent.Done()
				}
				began := time.Now()
				_, err := s.lock.TryLock(detached{parent, open()})
				if took := time.Since(began); !errors.Is(err, want) || took > ttl+5*time.Second || answers && errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v after %v", err, took)
				}
			})
		}
	}
}

// If the database does not answer, no call takes longer than the lease lasts.
func TestOutage_UnlockAndRenewReturnAtTheDeadline(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, *sqllock.Lease) error{
		"Unlock": func(ctx context.Context, l *sqllock.Lease) error { return l.Unlock(ctx) },
		"Renew":  func(ctx context.Context, l *sqllock.Lease) error { return l.Renew(ctx) },
	} {
		runInBubble(t, name, func(t *testing.T) {
			r, mock := mocked(t, dialect.Postgres(), sqllock.Autocommit)
			mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
			registry := newRegistry(t, r, &sqllock.RegistryOptions{TTL: 200 * time.Millisecond, NoRenew: true})
			lease := try(t, obtain(t, registry, "k"))
			mock.ExpectExec(map[string]string{"Unlock": "DELETE FROM INT_LOCK ", "Renew": "UPDATE"}[name]).
				WillDelayFor(time.Hour).WillReturnResult(driver.RowsAffected(1))
			err := call(t.Context(), lease)
			if !errors.Is(err, sqllock.ErrDatabase) && !errors.Is(err, sqllock.ErrLockLost) {
				t.Fatal(err)
			}
			if time.Until(lease.Deadline()) > 0 {
				t.Fatal("gave up early")
			}
		})
	}
}

func TestOutage_NoCallOutlastsItsContext(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, *fixture) error{
		"List":      func(ctx context.Context, s *fixture) error { return check.ErrorOf(s.repository.List(ctx)) },
		"ListFirst": func(ctx context.Context, s *fixture) error { return check.ErrorOf(s.repository.ListFirst(ctx, 1)) },
		"DeleteRow": func(ctx context.Context, s *fixture) error {
			return check.ErrorOf(s.repository.DeleteRow(ctx, sqllock.Row{Region: "DEFAULT", LockKey: "k", Holder: "h"}))
		},
		"DeleteExpired": func(ctx context.Context, s *fixture) error { return check.ErrorOf(s.repository.DeleteExpired(ctx)) },
		"NewRepository": func(ctx context.Context, s *fixture) error {
			return check.ErrorOf(sqllock.NewRepository(ctx, s.pool.DB, dialect.SQLite(), nil))
		},
		"ReleaseAll":     func(ctx context.Context, s *fixture) error { return s.repository.ReleaseAll(ctx) },
		"Registry.Close": func(ctx context.Context, s *fixture) error { return s.registry.Close(ctx) },
		"Acquire": func(ctx context.Context, s *fixture) error {
			return check.ErrorOf(s.repository.Acquire(ctx, "k", s.repository.NewHolder(), ttl))
		},
		"TryLock": func(ctx context.Context, s *fixture) error { return check.ErrorOf(s.lock.TryLock(ctx)) },
		"Lock":    func(ctx context.Context, s *fixture) error { return check.ErrorOf(s.lock.Lock(ctx)) },
		"LockAll": func(ctx context.Context, s *fixture) error {
			return check.ErrorOf(obtainAll(s.T, s.registry, "k", "l").Lock(ctx))
		},
		"Renew": func(ctx context.Context, s *fixture) error {
			return check.ErrorOf(s.repository.Renew(ctx, "k", "h", ttl))
		},
		"Delete": func(ctx context.Context, s *fixture) error { return check.ErrorOf(s.repository.Delete(ctx, "k", "h")) },
		"IsAcquired": func(ctx context.Context, s *fixture) error {
			return check.ErrorOf(s.repository.IsAcquired(ctx, "k", "h"))
		},
		"Peek": func(ctx context.Context, s *fixture) error { _, _, err := s.repository.Peek(ctx, "k"); return err },
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Serializable)
			if name == "Registry.Close" {
				held(s)
			}
			stopAnswering(s)
			const limit = time.Second
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := time.Now()
			err := call(ctx, s)
			took := time.Since(began)
			if took > limit+slack {
				t.Errorf("returned after %v, with a limit of %v", took, limit)
			}
			is(t, err, context.DeadlineExceeded)
			waitUntilCallsFail(s)
		})
	}
}

// A context without a deadline does not make NewRepository wait for ever; nor does a driver that does not
// watch its context.
func TestOutage_NewRepositoryTimesOut(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		noAnswer func(*fixture)
		limit    time.Duration // of the context, if there is one
		most     time.Duration
	}{
		"no deadline": {stopAnswering, 0, 10 * time.Second}, "a driver that watches": {blackHole, 10 * time.Millisecond, 10 * time.Millisecond},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Serializable)
			test.noAnswer(s)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.limit > 0 {
				ctx, cancel = context.WithTimeout(ctx, test.limit)
				defer cancel()
			}
			began := time.Now()
			_, err := sqllock.NewRepository(ctx, s.pool.DB, dialect.SQLite(), nil)
			check.Takes(t, "the call", began, 0, test.most+slack)
			if !errors.Is(err, sqllock.ErrDatabase) || test.limit > 0 && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			waitUntilCallsFail(s)
		})
	}
}

// A database that is busy for a moment, as SQLite's is while another process writes, is
// asked again.
func TestOutage_NewRepositoryTriesAgainWhileBusy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		const busyFor = time.Second
		begin := time.Now()
		s.connector.Follow(func(context.Context, flaky.Moment) error {
			if time.Since(begin) < busyFor {
				return busy{}
			}
			return nil
		})
		must(t, check.ErrorOf(sqllock.NewRepository(t.Context(), s.pool.DB, dialect.SQLite(), nil)))
		begin = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), busyFor/2)
		defer cancel()
		_, err := sqllock.NewRepository(ctx, s.pool.DB, dialect.SQLite(), nil)
		if took := time.Since(begin); !errors.Is(err, sqllock.ErrDatabase) || !errors.As(err, new(busy)) || took > busyFor/2+slack {
			t.Error(err, took)
		}
		s.connector.Follow(nil)
	})
}

// Callers that queue behind one that gets no answer fail with it, instead of each sending a statement of its
// own to a server that does not answer. So do those that queue behind a joint lock, at any of its keys.
func TestOutage_WaitersFailTogether(t *testing.T) {
	t.Parallel()
	alone := [][]string{{"k"}, {"k"}, {"k"}, {"k"}, {"k"}}
	for name, test := range map[string]struct {
		opts  sqllock.RepositoryOptions
		wants [][]string
	}{
		"batches": {sqllock.RepositoryOptions{}, alone}, "each alone": {sqllock.RepositoryOptions{DisableBatching: true}, alone},
		"joint": {sqllock.RepositoryOptions{}, [][]string{{"b", "a"}, {"a"}, {"b"}, {"b", "c"}}},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newPlainFixture(t, test.opts)
			stopAnswering(s)
			failed := make(chan time.Time, len(test.wants))
			for _, keys := range test.wants {
				lock := obtainAll(t, s.registry, keys...)
				go func() {
					if _, err := lock.Lock(t.Context()); !errors.Is(err, sqllock.ErrDatabase) || errors.Is(err, sqllock.ErrNotAcquired) {
						t.Errorf("%s: %v", keys, err)
					}
					failed <- time.Now()
				}()
				synctest.Wait() // they queue in this order
			}
			first := <-failed
			for range test.wants[1:] {
				if later := (<-failed).Sub(first); later > slack {
					t.Errorf("a waiter failed %v after the first", later)
				}
			}
			waitUntilCallsFail(s)
			lease := locked(t, s.lock) // the next one does not get the error of an earlier one
			must(t, lease.Unlock(t.Context()))
		})
	}
}

// A joint lock that gets no answer about one key while it polls that says nothing to those who wait for another of its keys.
func TestOutage_OfOneKeyOfAJointLock(t *testing.T) {
	type silent struct{}
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		rival := newRegistry(t, newRepository(t, s.db.DB, nil), nil)
		held := tryKey(t, rival, "b")
		must(t, check.ErrorOf(rival.TryLock(t.Context(), "a")))
		joint := check.Begin(func() error {
			return check.ErrorOf(obtainAll(t, s.registry, "a", "b").Lock(context.WithValue(t.Context(), silent{}, true)))
		})
		time.Sleep(time.Second) // it polls a
		s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
			if m.Done || ctx.Value(silent{}) == nil {
				return nil
			}
			time.Sleep(silence)
			return errGone
		})
		time.Sleep(2 * time.Second) // its reads hang, and others go on
		waiting := make(chan error, 2)
		for range cap(waiting) {
			go func() { waiting <- s.registry.ExecuteLocked(t.Context(), "b", nothing) }()
			synctest.Wait()
		}
		is(t, <-joint, sqllock.ErrDatabase)
		if len(waiting) > 0 {
			t.Error(<-waiting)
		}
		must(t, held.Unlock(t.Context()))
		for range cap(waiting) {
			must(t, <-waiting)
		}
		waitUntilCallsFail(s)
	})
}

// A lease that is shorter than the database's answers take fails its caller alone.
func TestOutage_TooShortALeaseFailsItsCallerAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if !m.Done {
				time.Sleep(15 * time.Millisecond)
			}
			return nil
		})
		short := check.Begin(func() error { return check.ErrorOf(s.lock.WithTTL(sqllock.MinTTL).TryLock(t.Context())) })
		synctest.Wait()
		must(t, locked(t, s.lock).Unlock(t.Context()))
		is(t, <-short, sqllock.ErrDatabase)
		s.connector.Follow(nil)
	})
}

// A lease counts from the statement that acquires it, not from those for which the database was busy.
func TestOutage_LostRacesLeaveTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		until := time.Now().Add(ttl / 3)
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Done || time.Now().After(until) {
				return nil
			}
			time.Sleep(3 * time.Second)
			return busy{}
		})
		if left := time.Until(try(t, s.lock).Deadline()); left < ttl-time.Second {
			t.Errorf("%v of the lease are left", left)
		}
	})
}

// A caller that has waited for an answer for as long as it wants to says nothing about the database to others, who may wait longer.
func TestOutage_WaiterThatGivesUpFailsNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newPlainFixture(t, sqllock.RepositoryOptions{})
		late := holdBack(s, flaky.Query)
		first := check.Begin(func() error { return check.ErrorOf(s.lock.TryLockFor(t.Context(), time.Second)) })
		<-late.reached
		second := check.Begin(func() error { return s.lock.ExecuteLocked(t.Context(), nothing) })
		is(t, <-first, sqllock.ErrDatabase) // for itself
		close(late.let)
		must(t, <-second)
	})
}

// patient returns a fixture whose waiters wait through outages.
func patient(t *testing.T) *fixture {
	t.Helper()
	s := newFixture(t, sqllock.Serializable)
	s.registry = newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: ttl, WaitThroughOutages: true, NoRenew: true})
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
func TestOutage_WaitersOutlastIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := patient(t)
		const outage = 20 * time.Second
		sent, began := outageFor(s, outage), time.Now()
		const waiters = 3
		done := make(chan error, waiters)
		for range waiters {
			go func() { done <- s.registry.ExecuteLocked(t.Context(), "k", nothing) }()
		}
		for range waiters {
			must(t, <-done)
		}
		check.Takes(t, "the wait", began, outage, outage+2*time.Second)
		// The first one tries once a second. An attempt may be several operations.
		if n := sent.Load(); n > 100 {
			t.Errorf("%d operations in an outage of %v", n, outage)
		}
	})
}

// The end of the wait is an error of the database, with all that is known.
func TestOutage_EndOfAWait(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	for name, wait := range map[string]func(*sqllock.JdbcLock, context.Context) error{
		"by its limit": func(l *sqllock.JdbcLock, ctx context.Context) error { return check.ErrorOf(l.TryLockFor(ctx, limit)) },
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
		runInBubble(t, name, func(t *testing.T) {
			s := patient(t)
			outageFor(s, time.Hour)
			began := time.Now()
			err := wait(s.lock, t.Context())
			check.Takes(t, "the wait", began, limit, limit+2*time.Second)
			is(t, err, sqllock.ErrDatabase, errGone)
			check.IsNot(t, err, sqllock.ErrNotAcquired)
			check.Contains(t, err.Error(), "(for 10s)")
			s.connector.Follow(nil) // Close clears up
		})
	}
}

// Callers behind a waiter in an outage do not know whether the lock is held either.
func TestOutage_QueueBehindAWaiter(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := patient(t)
		outageFor(s, time.Hour)
		first := check.Begin(func() error { return check.ErrorOf(s.lock.TryLockFor(t.Context(), 20*time.Second)) })
		time.Sleep(time.Second)
		_, single := s.lock.TryLock(t.Context())
		_, queued := s.lock.TryLockFor(t.Context(), 9*time.Second)
		for _, err := range []error{single, queued, <-first} {
			is(t, err, sqllock.ErrDatabase, errGone)
			check.IsNot(t, err, sqllock.ErrNotAcquired)
		}
		check.Contains(t, queued.Error(), "(for 10s)")
		_, err := s.lock.TryLockFor(t.Context(), 2*time.Second)
		check.Contains(t, err.Error(), "(for 2s)")
		s.connector.Follow(nil) // Close clears up
	})
}

// A caller that gets no answer ends the waits behind it, but not those that outlast it.
func TestOutage_WaitersOutlastASingleTry(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := patient(t)
		silence := time.Now().Add(20 * time.Second)
		s.connector.Follow(func(ctx context.Context, _ flaky.Moment) error {
			bounded.Sleep(ctx, time.Until(silence))
			return ctx.Err()
		})
		single := check.Begin(func() error { return check.ErrorOf(s.lock.TryLock(t.Context())) })
		synctest.Wait()
		must(t, check.Value(s.lock.TryLockFor(t.Context(), time.Minute))(t).Unlock(t.Context()))
		is(t, <-single, sqllock.ErrDatabase)
	})
}

// The end of a wait may cut off a statement: there was no answer, whatever the driver says then.
func TestOutage_WaitThatEndsWithinAStatement(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := patient(t)
		opts := sqllock.RepositoryOptions{DisableBatching: true}
		registry := newRegistry(t, newRepository(t, s.pool, &opts), &sqllock.RegistryOptions{TTL: ttl, WaitThroughOutages: true, NoRenew: true})
		s.connector.Follow(func(ctx context.Context, _ flaky.Moment) error {
			if !bounded.Sleep(ctx, 300*time.Millisecond) {
				return errGone
			}
			return nil
		})
		for limit := 100 * time.Millisecond; limit < 900*time.Millisecond; limit += 100 * time.Millisecond {
			_, err := obtain(t, registry, limit.String()).TryLockFor(t.Context(), limit)
			if !errors.Is(err, sqllock.ErrDatabase) || errors.Is(err, errGone) {
				t.Errorf("after %v: error %v", limit, err)
			}
		}
		s.connector.Follow(nil)
	})
}

// What is not to be waited for.
func TestOutage_WhatNoWaiterOutlasts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*fixture)
		do      func(*fixture) error
		want    error
	}{
		"a single try": {
			prepare: func(s *fixture) { outageFor(s, time.Hour) },
			do:      func(s *fixture) error { return check.ErrorOf(s.lock.TryLock(s.Context())) },
			want:    errGone,
		},
		"a missing table": {
			prepare: func(s *fixture) { s.db.DB.MustExec("DROP TABLE INT_LOCK") },
			do:      func(s *fixture) error { return check.ErrorOf(s.lock.Lock(s.Context())) },
			want:    sqllock.ErrSchema,
		},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := patient(t)
			c.prepare(s)
			began := time.Now()
			is(t, c.do(s), c.want, sqllock.ErrDatabase)
			check.Takes(t, "the call", began, 0, 2*time.Second)
			s.connector.Follow(nil) // Close clears up
		})
	}
}

func TestOutage_CloseEndsAWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := patient(t)
		outageFor(s, 20*time.Second)
		time.AfterFunc(10*time.Second, func() { _ = s.registry.Close(t.Context()) })
		began := time.Now()
		is(t, check.ErrorOf(s.lock.Lock(t.Context())), sqllock.ErrClosed)
		check.Takes(t, "the call", began, 0, 12*time.Second)
		time.Sleep(20 * time.Second)
	})
}

// Other statements have the row locked for a moment whenever a slow server tries to delete it. It is not pinned for that.
func TestOutage_ReleaseAllOnASlowServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Serializable)
		deletes := func(n int64) {
			mock.ExpectBegin()
			mock.ExpectExec("WITH picked").WillDelayFor(time.Second).WillReturnResult(driver.RowsAffected(n))
			mock.ExpectCommit()
		}
		left := func(n int) { mock.ExpectQuery("SELECT COUNT").WillReturnRows(sqlmock.NewRows([]string{"n"}).AddRow(n)) }
		for range 5 {
			deletes(0)
			left(1)
		}
		deletes(1)
		deletes(0)
		left(0)
		must(t, r.ReleaseAll(t.Context()))
	})
}
