package registry_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// A stalling context keeps a goroutine that looks at it, once it is told to: as one stands still in a
// process that is stopped.
type stalling struct {
	context.Context

	stalls *atomic.Bool
	let    chan struct{}
}

func (s stalling) Done() <-chan struct{} {
	if s.stalls.Load() {
		<-s.let
	}
	return s.Context.Done()
}

// The goroutine that ends a lease stops between the contexts of its two entries: as in a process that
// continues after a pause, on a busy machine.
func TestLease_ContextIsDoneWhileItEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, rival := lateFixture(t, sqllock.Serializable)
		caller := stalling{t.Context(), new(atomic.Bool), make(chan struct{})}
		defer close(caller.let)
		outer := check.Value(s.lock.Lock(caller))(t)
		lease := check.Value(s.lock.Lock(context.WithoutCancel(outer.Context())))(t)
		made, cancel := context.WithCancel(lease.Context())
		defer cancel()
		caller.stalls.Store(true)
		next := locked(t, rival) // when the row has expired
		if err := lease.Context().Err(); err == nil || !errors.Is(context.Cause(lease.Context()), sqllock.ErrLockLost) {
			t.Errorf("the context lasts while another process has the lock: %v, cause %v", err, context.Cause(lease.Context()))
		}
		<-lease.Context().Done()
		if made.Err() == nil {
			t.Error("a context that is made from it lasts")
		}
		must(t, next.Unlock(t.Context()))
	})
}

// `defer lease.Unlock(ctx)` before the error is looked at is a common slip.
func TestLease_NilHoldsNothing(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	registry := newRegistry(t, newRepository(t, db.DB, nil), nil)
	holder := try(t, obtain(t, registry, "k"))
	failed, err := obtain(t, registry, "k").TryLock(t.Context())
	if failed != nil || !errors.Is(err, sqllock.ErrNotAcquired) {
		t.Fatal(failed, err)
	}
	for name, lease := range map[string]*sqllock.Lease{"Failed": failed, "Nil": nil, "Zero": new(sqllock.Lease)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for method, call := range map[string]func() error{
				"Unlock":   func() error { return lease.Unlock(t.Context()) },
				"again":    func() error { return lease.Unlock(t.Context()) },
				"Renew":    func() error { return lease.Renew(t.Context()) },
				"RenewFor": func() error { return lease.RenewFor(t.Context(), time.Second) },
				"Guard":    func() error { return lease.Guard(t.Context(), nil) },
				"GuardFunc": func() error {
					return sqllock.GuardFunc[*sql.Row](t.Context(), lease, nil)
				},
			} {
				if err := call(); !errors.Is(err, sqllock.ErrNotHeld) || !strings.Contains(err.Error(), "lease is nil") {
					t.Errorf("%s: %v", method, err)
				}
			}
			if lease.Key() != "" || lease.Holder() != "" || lease.Token() != 0 || !lease.Deadline().IsZero() {
				t.Error(lease.Key(), lease.Holder(), lease.Token(), lease.Deadline())
			}
			if ctx := lease.Context(); ctx.Err() == nil || !errors.Is(context.Cause(ctx), sqllock.ErrNotHeld) {
				t.Error(context.Cause(ctx))
			}
		})
	}
	must(t, holder.Unlock(t.Context()))
}

// leftOf returns how long the holder has, as a failed try says.
func leftOf(t *testing.T, lock *sqllock.JdbcLock) time.Duration {
	t.Helper()
	_, err := lock.TryLock(t.Context())
	var held *sqllock.HeldError
	if !errors.As(err, &held) {
		t.Fatal(err)
	}
	return held.Left
}

// What has run under a lease that is lost returns an error that says so once, also if it says so itself.
func TestLease_LossIsSaidOnce(t *testing.T) {
	t.Parallel()
	type run = func(context.Context) error
	for name, execute := range map[string]func(*fixture, run) error{
		"lock": func(s *fixture, fn run) error { return s.lock.ExecuteLocked(s.Context(), fn) },
		"joint": func(s *fixture, fn run) error {
			return obtainAll(s.T, s.registry, "k", "l").ExecuteLockedFor(s.Context(), 0, fn)
		},
		"transaction": func(s *fixture, fn run) error {
			return s.lock.ExecuteLockedTx(s.Context(), s.db.DB.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
				must(s.T, tx.Rollback()) // on SQLite nothing else could delete the row
				return fn(ctx)
			})
		},
		"semaphore": func(s *fixture, fn run) error {
			return check.Value(semaphore.New(s.registry, "k", 3))(s.T).Execute(s.Context(), 2, fn)
		},
		"read lock":  func(s *fixture, fn run) error { return readWrite(s).ExecuteRLocked(s.Context(), fn) },
		"write lock": func(s *fixture, fn run) error { return readWrite(s).ExecuteLocked(s.Context(), fn) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newFixture(t, sqllock.Autocommit)
				for what, fn := range map[string]func(*sqllock.Lease) error{
					"is silent":     func(*sqllock.Lease) error { return nil },
					"renews":        func(l *sqllock.Lease) error { return l.Renew(s.Context()) },
					"unlocks":       func(l *sqllock.Lease) error { return l.Unlock(s.Context()) },
					"says it again": func(l *sqllock.Lease) error { return fmt.Errorf("the step: %w", l.Unlock(s.Context())) },
				} {
					err := execute(s, func(ctx context.Context) error {
						lease := s.registry.LeasesFrom(ctx)[0]
						must(t, check.ErrorOf(s.db.DB.ExecContext(ctx, "DELETE FROM INT_LOCK")))
						is(t, lease.Renew(s.Context()), sqllock.ErrLockLost) //nolint:contextcheck // ctx has ended with the lease
						return fn(lease)
					})
					is(t, err, sqllock.ErrLockLost)
					if n := strings.Count(err.Error(), sqllock.ErrLockLost.Error()+": "); n != 1 { // with the key
						t.Errorf("one that %s: it is said %d times: %v", what, n, err)
					}
				}
			})
		})
	}
}

// A try in the holder's process says how long the row lasts, not the lease, which
// ends earlier.
func TestLease_TimeLeftOfALocalHolder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _ := renewing(t, sqllock.RegistryOptions{MaxHold: 2 * renewalTTL, NoRenew: true})
		lease := held(s)
		check.Equal(t, "left at the beginning", leftOf(t, s.lock), renewalTTL)
		time.Sleep(5 * time.Second)
		check.Equal(t, "left after 5 s", leftOf(t, s.lock), renewalTTL-5*time.Second)
		must(t, lease.Renew(t.Context()))
		check.Equal(t, "left after a renewal", leftOf(t, s.lock), renewalTTL)
		must(t, lease.RenewFor(t.Context(), 10*time.Second))
		check.Equal(t, "left after a renewal for less", leftOf(t, s.lock), renewalTTL)
		must(t, lease.RenewFor(t.Context(), 5*renewalTTL))
		check.Equal(t, "left after a renewal for more", leftOf(t, s.lock), 5*renewalTTL)
		must(t, lease.Unlock(t.Context()))
	})
}

// LeaseFrom says whether the caller is under the lock, without a round trip.
func TestLease_FromSendsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		registry := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: renewalTTL, NoRenew: true})
		s.lock = obtain(t, registry, "k")
		lease := held(s)
		s.connector.Follow(nil) // count from here
		ctx := context.WithoutCancel(lease.Context())
		got, err := registry.LeaseFrom(ctx, "k")
		if got != lease || err != nil {
			t.Error(got, err)
		}
		for range 2 {
			if got, err := registry.LeaseFrom(t.Context(), "k"); got != nil || !errors.Is(err, sqllock.ErrNotHeld) {
				t.Error(got, err)
			}
			<-lease.Context().Done()
			if got, err := registry.LeaseFrom(ctx, "k"); got != nil || !errors.Is(err, sqllock.ErrLockLost) {
				t.Error(got, err)
			}
		}
		check.Equal(t, "statements", s.connector.Count(), 0)
	})
}

// A caller that enters again waits for the database no longer than one that acquires, and gets the same errors. Here the
// database takes seconds, and the driver does not see its context end.
func TestLease_EnteringAgainEndsInTime(t *testing.T) {
	t.Parallel()
	const limit = 150 * time.Millisecond
	for name, test := range map[string]struct {
		enter func(s *fixture, held, cancelled context.Context) error // cancelled is made from held, and ends after limit
		want  []error
		not   error
	}{
		"a limit": {func(s *fixture, held, _ context.Context) error {
			return check.ErrorOf(s.lock.TryLockFor(held, limit))
		}, []error{sqllock.ErrDatabase}, sqllock.ErrNotAcquired},
		"a deadline": {func(s *fixture, held, _ context.Context) error {
			ctx, cancel := context.WithTimeout(held, limit)
			defer cancel()
			return check.ErrorOf(s.lock.TryLock(ctx))
		}, []error{sqllock.ErrDatabase, context.DeadlineExceeded}, sqllock.ErrNotAcquired},
		"a cancellation": {func(s *fixture, _, cancelled context.Context) error {
			return check.ErrorOf(s.lock.TryLockFor(cancelled, time.Hour))
		}, []error{sqllock.ErrNotAcquired, context.Canceled}, sqllock.ErrDatabase},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Autocommit)
			lease := held(s)
			s.connector.Follow(func(context.Context, flaky.Moment) error { time.Sleep(lateTTL); return nil })
			ctx, cancel := context.WithCancel(lease.Context())
			time.AfterFunc(limit, cancel)
			began := time.Now()
			err := test.enter(s, lease.Context(), ctx)
			check.Takes(t, "to enter again", began, limit, limit+slack)
			is(t, err, test.want...)
			if errors.Is(err, test.not) {
				t.Error(err)
			}
			s.connector.Follow(nil)
			must(t, lease.Context().Err())
			must(t, lease.Unlock(t.Context()))
		})
	}
}

// A caller that enters again, in vain, may be the last one that has the lock: then it does not wait for the release either.
func TestLease_EnteringAgainEndsInTime_AsTheLastUse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const limit = 150 * time.Millisecond
		s := newFixture(t, sqllock.Autocommit)
		lease := held(s)
		s.connector.Follow(func(context.Context, flaky.Moment) error { time.Sleep(lateTTL); return nil })
		time.AfterFunc(limit/2, func() { must(t, lease.Unlock(t.Context())) })
		began := time.Now()
		is(t, check.ErrorOf(s.lock.TryLockFor(context.WithoutCancel(lease.Context()), limit)), sqllock.ErrDatabase)
		check.Takes(t, "to enter again", began, limit, limit+2*slack) // a moment each for the renewal, a read and the release
		s.connector.Follow(nil)
		must(t, check.Value(s.lock.TryLockFor(t.Context(), 2*lateTTL))(t).Unlock(t.Context()))
	})
}

// A renewal that the server answers, over and over, is no silence: SQLite does while another process writes.
func TestLease_EnteringAgainAfterLostRaces(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		lease := held(s)
		s.connector.Follow(func(context.Context, flaky.Moment) error { return busy{} })
		is(t, check.ErrorOf(s.lock.TryLockFor(lease.Context(), 200*time.Millisecond)), sqllock.ErrNotAcquired)
		s.connector.Follow(nil)
		must(t, lease.Unlock(t.Context()))
	})
}

// A lease that was unlocked is carried no more, whatever else has become of it: of work that goes on, the context is one like
// any other.
func TestLease_UnlockedIsNotCarried(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		lost := held(s)
		time.Sleep(ttl + time.Second)
		is(t, lost.Unlock(t.Context()), sqllock.ErrLockLost)
		unlocked := held(s)
		inner := check.Value(s.lock.Lock(unlocked.Context()))(t)
		must(t, unlocked.Unlock(t.Context())) // while inner holds the lock
		for _, lease := range []*sqllock.Lease{lost, unlocked} {
			ctx := context.WithoutCancel(lease.Context())
			check.Equal(t, "leases", len(s.registry.LeasesFrom(ctx)), 0)
			is(t, check.ErrorOf(s.registry.LeaseFrom(ctx, "k")), sqllock.ErrNotHeld)
			is(t, s.registry.RenewLock(ctx, "k"), sqllock.ErrNotHeld)
			is(t, check.ErrorOf(s.lock.TryLock(ctx)), sqllock.ErrNotAcquired)
		}
		must(t, inner.Unlock(t.Context()))
		must(t, try(t, s.lock).Unlock(t.Context()))
	})
}

// Spring's testTransientDataAccessException: a release that lost a race is tried
// again, and ends unlocked.
func TestUnlock_LostRaceIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Autocommit)
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
		lease := try(t, obtain(t, newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true}), "k"))
		mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnError(&pq.Error{Code: "40P01"})
		mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnResult(driver.RowsAffected(1))
		must(t, lease.Unlock(t.Context()))
	})
}

// database/sql sends a statement again if the driver calls the connection bad. lib/pq does
// that for a connection that ends after the statement was sent, so the second one finds
// nothing to do: the lock has been released all the same.
func TestUnlock_SentTwiceIsARelease(t *testing.T) {
	t.Parallel()
	for name, minHold := range map[string]time.Duration{"Unlock": 0, "UnlockWithAMinimumHold": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, sqllock.Serializable)
			lease := try(t, obtain(t, s.registry, "k").WithMinHold(minHold))
			var once sync.Once
			s.connector.Follow(func(_ context.Context, m flaky.Moment) (err error) {
				if m.Op == flaky.Exec && m.Done {
					once.Do(func() { err = driver.ErrBadConn })
				}
				return err
			})
			must(t, lease.Unlock(t.Context()))
		})
	}
}

// The minimum hold counts from the lease, not from the statement that acquired the row, which may take its time.
func TestUnlock_MinHoldCountsFromTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		const minHold = 2 * time.Second
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if !m.Done {
				time.Sleep(50 * time.Millisecond)
			}
			return nil
		})
		lease := check.Value(s.lock.WithMinHold(minHold).TryLock(t.Context()))(t)
		s.connector.Follow(nil)
		row := check.Value(s.repository.List(t.Context()))(t)[0]
		must(t, lease.Unlock(t.Context()))
		kept := check.Value(s.repository.List(t.Context()))(t)[0]
		if lasts := row.Age + kept.Left; !kept.Kept() || lasts < minHold {
			t.Errorf("a minimum hold of %v lasts for %v", minHold, lasts)
		}
	})
}

// A row is released once its minimum hold is over, and not while it lasts. One that only expires was not.
func TestRow_Released(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		is := func(when string, released bool) {
			t.Helper()
			if row := check.Value(s.repository.List(t.Context()))(t)[0]; row.Released() != released {
				t.Errorf("%s: released %t: %+v", when, !released, row)
			}
		}
		lease := check.Value(s.lock.WithMinHold(time.Second).TryLock(t.Context()))(t)
		is("held", false)
		must(t, lease.Unlock(t.Context()))
		is("in its minimum hold", false)
		time.Sleep(2 * time.Second)
		is("after its minimum hold", true)
		must(t, check.ErrorOf(s.repository.Acquire(t.Context(), "k", s.repository.NewHolder(), time.Second)))
		time.Sleep(2 * time.Second)
		is("expired", false)
	})
}

// A batch of releases whose answer is lost has released them.
func TestUnlock_LostAnswerOfABatch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		const n = 10
		var leases []*sqllock.Lease
		for i := range n {
			leases = append(leases, try(t, obtain(t, s.registry, fmt.Sprint(i))))
		}
		first := make(chan struct{})
		var held, lost sync.Once
		s.connector.Follow(func(_ context.Context, m flaky.Moment) (err error) {
			switch {
			case m.Op == flaky.Exec && !m.Done:
				held.Do(func() { <-first }) // the others are batched behind it
			case m.Op == flaky.Query && m.Done:
				lost.Do(func() { err = errGone })
			}
			return err
		})
		var unlocking sync.WaitGroup
		for _, lease := range leases {
			unlocking.Go(func() {
				if err := lease.Unlock(t.Context()); err != nil {
					t.Errorf("%s: %v", lease.Key(), err)
				}
			})
			synctest.Wait()
		}
		close(first)
		unlocking.Wait()
	})
}

// If the file is removed, and another process makes a new one, both have all locks. The holders of the old
// one lose theirs at their next renewal, and nothing more is acquired in it.
func TestFile_Replaced(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			content, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path))
		},
	} {
		runInBubble(t, name, func(t *testing.T) {
			db := virtual.Migrated(t, dialect.Spring7)
			registry := newRegistry(t, newRepository(t, db.DB, nil), &sqllock.RegistryOptions{TTL: ttl, NoRenew: true})
			renewed := locked(t, obtain(t, registry, "renewed").WithAutoRenew(true))
			byHand := locked(t, obtain(t, registry, "by hand"))
			guarded := locked(t, obtain(t, registry, "guarded"))
			must(t, replace(db.Path))

			is(t, byHand.Renew(t.Context()), sqllock.ErrLockLost)
			tx := check.Value(db.DB.BeginTxx(t.Context(), nil))(t)
			is(t, guarded.Guard(t.Context(), tx), sqllock.ErrLockLost)
			must(t, tx.Rollback())
			is(t, check.ErrorOf(registry.TryLock(t.Context(), "free")), sqllock.ErrSchema)
			select {
			case <-renewed.Context().Done():
			case <-time.After(ttl / 2):
				t.Error("renewed in a file that no other process sees")
			}
			for _, lease := range []*sqllock.Lease{renewed, byHand, guarded} {
				is(t, lease.Unlock(t.Context()), sqllock.ErrLockLost)
			}
		})
	}
}
