package sqllock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// stopAnswering has the server answer nothing from now on, behind a driver that does not look
// at its context, as lib/pq does not while it reads. An hour later the connections break.
func stopAnswering(s *fixture) {
	begin := time.Now()
	s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
		if !m.Done {
			time.Sleep(time.Until(begin.Add(time.Hour)))
			return errGone
		}
		return nil
	})
}

// waitUntilCallsFail waits for the calls that were left behind.
func waitUntilCallsFail(s *fixture) {
	time.Sleep(2 * time.Hour)
	s.connector.Follow(nil)
}

// slack is how much longer than its context a call may take.
const slack = 200 * time.Millisecond

func TestNoCallOutlastsItsContext(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, *fixture) error{
		"List":      func(ctx context.Context, s *fixture) error { _, err := s.repository.List(ctx); return err },
		"ListFirst": func(ctx context.Context, s *fixture) error { _, err := s.repository.ListFirst(ctx, 1); return err },
		"DeleteRow": func(ctx context.Context, s *fixture) error {
			_, err := s.repository.DeleteRow(ctx, sqllock.Row{Region: "DEFAULT", LockKey: "k", Holder: "h"})
			return err
		},
		"DeleteExpired": func(ctx context.Context, s *fixture) error { _, err := s.repository.DeleteExpired(ctx); return err },
		"NewRepository": func(ctx context.Context, s *fixture) error {
			_, err := sqllock.NewRepository(ctx, s.pool.DB, dialect.SQLite(), nil)
			return err
		},
		"ReleaseAll":     func(ctx context.Context, s *fixture) error { return s.repository.ReleaseAll(ctx) },
		"Registry.Close": func(ctx context.Context, s *fixture) error { return s.registry.Close(ctx) },
		"Acquire": func(ctx context.Context, s *fixture) error {
			_, err := s.repository.Acquire(ctx, "k", s.repository.NewHolder(), ttl)
			return err
		},
		"TryLock": func(ctx context.Context, s *fixture) error { _, err := s.lock.TryLock(ctx); return err },
		"Lock":    func(ctx context.Context, s *fixture) error { _, err := s.lock.Lock(ctx); return err },
		"LockAll": func(ctx context.Context, s *fixture) error {
			_, err := obtainAll(s.T, s.registry, "k", "l").Lock(ctx)
			return err
		},
		"Renew": func(ctx context.Context, s *fixture) error {
			_, err := s.repository.Renew(ctx, "k", "h", ttl)
			return err
		},
		"Delete": func(ctx context.Context, s *fixture) error { _, err := s.repository.Delete(ctx, "k", "h"); return err },
		"IsAcquired": func(ctx context.Context, s *fixture) error {
			_, err := s.repository.IsAcquired(ctx, "k", "h")
			return err
		},
		"Peek": func(ctx context.Context, s *fixture) error { _, _, err := s.repository.Peek(ctx, "k"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
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
				if !errors.Is(err, sqllock.ErrDatabase) && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				waitUntilCallsFail(s)
			})
		})
	}
}

// A caller that has left has its row deleted, although that takes longer than the caller waits for it.
func TestARowOfACallerThatHasLeftIsDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newPlainFixture(t, sqllock.RepositoryOptions{DisableBatching: true})
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Done { // the answers are late
				time.Sleep(400 * time.Millisecond)
			}
			return nil
		})
		const limit = 100 * time.Millisecond
		began := time.Now()
		_, err := s.lock.TryLockFor(t.Context(), limit)
		if took := time.Since(began); !errors.Is(err, sqllock.ErrNotAcquired) && !errors.Is(err, sqllock.ErrDatabase) || took > limit+slack {
			t.Error(err, took)
		}
		time.Sleep(ttl / 2)
		var rows int
		must(t, s.db.DB.Get(&rows, "SELECT COUNT(*) FROM INT_LOCK"))
		if rows != 0 {
			t.Errorf("%d rows", rows)
		}
		s.connector.Follow(nil)
	})
}

// A context without a deadline does not make NewRepository wait for ever.
func TestNewRepositoryTimesOut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		stopAnswering(s)
		const limit = 10 * time.Second
		began := time.Now()
		_, err := sqllock.NewRepository(t.Context(), s.pool.DB, dialect.SQLite(), nil)
		if took := time.Since(began); took > limit+slack {
			t.Errorf("returned after %v, with a limit of %v", took, limit)
		}
		if !errors.Is(err, sqllock.ErrDatabase) {
			t.Error(err)
		}
		waitUntilCallsFail(s)
	})
}

// The same with a driver that does watch its context.
func TestADatabaseThatCannotBeReachedIsADatabaseError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		blackHole(s)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := sqllock.NewRepository(ctx, s.pool.DB, dialect.SQLite(), nil)
		if !errors.Is(err, sqllock.ErrDatabase) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		s.connector.Follow(nil)
	})
}

// A database that is busy for a moment, as SQLite's is while another process writes, is
// asked again.
func TestNewRepositoryTriesAgainWhileTheDatabaseIsBusy(t *testing.T) {
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
		_, err := sqllock.NewRepository(t.Context(), s.pool.DB, dialect.SQLite(), nil)
		must(t, err)
		begin = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), busyFor/2)
		defer cancel()
		_, err = sqllock.NewRepository(ctx, s.pool.DB, dialect.SQLite(), nil)
		if took := time.Since(begin); !errors.Is(err, sqllock.ErrDatabase) || !errors.As(err, new(busy)) || took > busyFor/2+slack {
			t.Error(err, took)
		}
		s.connector.Follow(nil)
	})
}

// busy is what SQLite's driver says when another process writes.
type busy struct{}

func (busy) Error() string { return "database is locked (5) (SQLITE_BUSY)" }
func (busy) Code() int     { return 5 }

// Callers that queue behind one that gets no answer fail with it, instead of each sending a
// statement of its own to a server that does not answer.
func TestWaitersFailTogetherIfTheDatabaseDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]sqllock.RepositoryOptions{
		"batches": {}, "each alone": {DisableBatching: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newPlainFixture(t, opts)
				stopAnswering(s)
				began := time.Now()
				const waiters = 5
				failed := make(chan error, waiters)
				for range waiters {
					go func() {
						_, err := s.lock.Lock(t.Context())
						failed <- err
					}()
				}
				var first time.Duration
				for i := range waiters {
					if err := <-failed; !errors.Is(err, sqllock.ErrDatabase) || errors.Is(err, sqllock.ErrNotAcquired) {
						t.Error(err)
					}
					took := time.Since(began)
					if i == 0 {
						first = took
					}
					if took > first+slack {
						t.Errorf("waiter %d failed after %v, the first after %v", i+1, took, first)
					}
				}
				waitUntilCallsFail(s)
				lease, err := s.lock.Lock(t.Context()) // the next one does not get the error of an earlier one
				must(t, err)
				must(t, lease.Unlock(t.Context()))
			})
		})
	}
}

// A lease that is shorter than the database's answers take fails its caller alone.
func TestALeaseThatIsTooShortDoesNotFailOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if !m.Done {
				time.Sleep(15 * time.Millisecond)
			}
			return nil
		})
		short := make(chan error, 1)
		go func() {
			_, err := s.lock.WithTTL(sqllock.MinTTL).TryLock(t.Context())
			short <- err
		}()
		synctest.Wait()
		lease, err := s.lock.Lock(t.Context())
		must(t, err)
		must(t, lease.Unlock(t.Context()))
		if err := <-short; !errors.Is(err, sqllock.ErrDatabase) {
			t.Error(err)
		}
		s.connector.Follow(nil)
	})
}

// A caller whose own context has ended says nothing about the database.
func TestAWaiterThatGivesUpDoesNotFailOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newPlainFixture(t, sqllock.RepositoryOptions{})
		late := holdBack(s, flaky.Query)
		first := make(chan error, 1)
		go func() {
			_, err := s.lock.TryLockFor(t.Context(), time.Second)
			first <- err
		}()
		<-late.reached
		second := make(chan error, 1)
		go func() {
			lease, err := s.lock.Lock(t.Context())
			if err == nil {
				err = lease.Unlock(t.Context())
			}
			second <- err
		}()
		if err := <-first; !errors.Is(err, sqllock.ErrNotAcquired) {
			t.Error(err)
		}
		close(late.let)
		must(t, <-second)
	})
}
