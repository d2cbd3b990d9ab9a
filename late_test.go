package sqllock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// lateTTL is waited for; what is late comes after it.
const lateTTL = 2 * time.Second

// A delay holds the first operation of a kind back until it is let go, and then has
// it done although its caller has left: a packet that was long under way.
type delay struct {
	reached, let chan struct{}
	once         bool
}

func holdBack(s *fixture, op flaky.Op) *delay {
	d := &delay{reached: make(chan struct{}), let: make(chan struct{})}
	s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
		if m.Op == op && !m.Done && !d.once {
			d.once = true
			close(d.reached)
			<-d.let
		}
		return nil
	})
	return d
}

// lateFixture is a fixture whose leases are short, with a rival in another process on
// the same table.
func lateFixture(t *testing.T, isolation sqllock.Isolation) (s *fixture, rival *sqllock.JdbcLock) {
	t.Helper()
	s = newFixture(t, isolation)
	s.lock = obtain(t, newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: lateTTL, IdleBetweenTries: 20 * time.Millisecond}), "k")
	other := newRepository(t, s.db.DB, nil)
	return s, obtain(t, newRegistry(t, other, &sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: 20 * time.Millisecond}), "k")
}

// A DELETE or a renewal of an old holder that arrives when the next one holds does not
// affect it.
func TestALateStatementDoesNotAffectTheNextHolder(t *testing.T) {
	t.Parallel()
	unlock := (*sqllock.Lease).Unlock
	for name, late := range map[string]struct {
		minHold time.Duration
		send    func(*sqllock.Lease, context.Context) error
	}{
		"Unlock":                 {0, unlock},
		"UnlockWithAMinimumHold": {ttl, unlock},
		"Renew":                  {0, (*sqllock.Lease).Renew},
	} {
		send := late.send
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, rival := lateFixture(t, sqllock.Serializable)
				s.lock = s.lock.WithMinHold(late.minHold)
				old := held(s)
				late := holdBack(s, flaky.Exec)
				answer := make(chan error, 1)
				go func() { answer <- send(old, context.WithoutCancel(t.Context())) }()
				select {
				case <-late.reached:
				case err := <-answer:
					t.Fatalf("%s sent nothing: %v", name, err)
				}
				next, err := rival.Lock(t.Context())
				must(t, err)
				if old.Context().Err() == nil {
					t.Error("two holders")
				}
				close(late.let)
				if err := <-answer; !errors.Is(err, sqllock.ErrLockLost) && !errors.Is(err, sqllock.ErrDatabase) {
					t.Errorf("the late %s: %v", name, err)
				}
				must(t, next.Renew(t.Context()))
				must(t, next.Unlock(t.Context()))
			})
		})
	}
}

// An acquire that is committed when its lease would be over gives no lease, and
// leaves no row.
func TestALateCommitGivesNoLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, rival := lateFixture(t, sqllock.Serializable)
		late := holdBack(s, flaky.Commit)
		type result struct {
			lease *sqllock.Lease
			err   error
		}
		answer := make(chan result, 1)
		go func() {
			lease, err := s.lock.TryLock(t.Context())
			answer <- result{lease, err}
		}()
		select {
		case <-late.reached:
		case got := <-answer:
			t.Fatalf("nothing was committed: %v, %v", got.lease, got.err)
		}
		time.AfterFunc(2*lateTTL, func() { close(late.let) })
		got := <-answer
		if got.lease != nil || !errors.Is(got.err, sqllock.ErrDatabase) || errors.Is(got.err, sqllock.ErrLockLost) {
			t.Fatalf("%v, %v", got.lease, got.err)
		}
		next, err := rival.Lock(t.Context()) // it is undone soon, if the answer was not waited for
		must(t, err)
		must(t, next.Unlock(t.Context()))
	})
}

// A statement may arrive although its caller has left. Its row has no holder, and is deleted
// before the process's next acquisition of the key.
func TestALateAcquireIsUndone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		const drawn = 3 // begin, acquire, draw; then comes commit
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Commit && m.Done || m.Op == flaky.Exec && m.N > drawn {
				return errGone // done, but the answer and the attempt to undo it are lost
			}
			return nil
		})
		if _, err := s.lock.TryLock(t.Context()); !errors.Is(err, sqllock.ErrDatabase) {
			t.Fatal(err)
		}
		s.connector.Follow(nil)
		row, ok, err := s.repository.Peek(t.Context(), "k")
		must(t, err)
		if !ok || row.Expired() {
			t.Fatalf("the test is to leave a row: %+v", row)
		}
		lease, err := s.lock.TryLock(t.Context())
		must(t, err)
		must(t, lease.Unlock(t.Context()))
	})
}

// A renewal whose answer comes when the lease is over is no renewal: the row, which
// it has made to last, goes.
func TestALateAnswerToARenewalIsALoss(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, rival := lateFixture(t, sqllock.Autocommit)
		lease := held(s)
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.N == 1 && m.Done {
				<-lease.Context().Done()
			}
			return nil
		})
		if err := lease.Renew(t.Context()); !errors.Is(err, sqllock.ErrLockLost) {
			t.Fatal(err)
		}
		next, err := rival.TryLock(t.Context())
		must(t, err)
		must(t, next.Unlock(t.Context()))
	})
}

// So does one that comes when the driver has been left behind.
func TestAVeryLateAnswerToARenewalIsALoss(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		s.lock = s.lock.WithTTL(renewalTTL)
		lease := held(s)
		answer := make(chan struct{})
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.N == 1 && m.Done {
				<-answer
			}
			return nil
		})
		if err := lease.Renew(t.Context()); !errors.Is(err, sqllock.ErrLockLost) {
			t.Fatal(err)
		}
		close(answer)
		synctest.Wait()
		next, err := obtain(t, newRegistry(t, newRepository(t, s.db.DB, nil), nil), "k").TryLock(t.Context())
		must(t, err)
		must(t, next.Unlock(t.Context()))
	})
}

// The same holds for a row that is written long after its caller has left, and whose deletion
// fails. There was no row to be deleted when the caller left, and that is forgotten after a
// time-to-live.
func TestAVeryLateAcquireWhoseDeletionFailsIsUndone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		var begun, committed atomic.Bool
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			switch {
			case m.Op == flaky.Begin && !m.Done && begun.CompareAndSwap(false, true):
				time.Sleep(lateTTL * 3 / 2)
			case m.Op == flaky.Commit && m.Done:
				committed.Store(true)
			case m.Op == flaky.Exec && committed.Load():
				return errGone
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), lateTTL/10)
		defer cancel()
		if _, err := s.repository.Acquire(ctx, "k", s.repository.NewHolder(), lateTTL); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		time.Sleep(lateTTL * 7 / 4)
		s.connector.Follow(nil)
		row, ok, err := s.repository.Peek(t.Context(), "k")
		must(t, err)
		if !ok || row.Expired() {
			t.Fatalf("the test is to leave a row: %+v", row)
		}
		got, err := s.repository.Acquire(t.Context(), "k", s.repository.NewHolder(), lateTTL)
		must(t, err)
		if !got.Acquired {
			t.Error(got)
		}
	})
}

// A lock that is acquired while the registry is closed is given back.
func TestAnAcquisitionDuringCloseIsUndone(t *testing.T) {
	t.Parallel()
	s := newFixture(t, sqllock.Autocommit)
	closed := make(chan error, 1)
	s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
		if m.N == 1 && m.Done {
			go func() { closed <- s.registry.Close(t.Context()) }() //nolint:contextcheck // the test's, not that of the statement
			for {
				if _, err := s.registry.Obtain("k"); errors.Is(err, sqllock.ErrClosed) {
					return nil
				}
			}
		}
		return nil
	})
	if _, err := s.lock.TryLock(t.Context()); !errors.Is(err, sqllock.ErrClosed) {
		t.Fatal(err)
	}
	must(t, <-closed)
	rows, err := s.repository.List(t.Context())
	must(t, err)
	if len(rows) != 0 {
		t.Fatal(rows)
	}
}

// An answer to a renewal that comes after the lease, but before its timer has run, as after a
// pause of the whole process, is late as well.
func TestALateAnswerBeforeTheTimer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _ := renewing(t, sqllock.RegistryOptions{})
		lease := held(s)
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && m.Done {
				sqllock.EndBeforeTimer(lease)
			}
			return nil
		})
		time.Sleep(renewalTTL/3 + time.Second)
		s.connector.Follow(nil)
		next, err := obtain(t, newRegistry(t, newRepository(t, s.db.DB, nil), nil), "k").TryLock(t.Context())
		must(t, err)
		must(t, next.Unlock(t.Context()))
	})
}

// A caller whose context ends while its row is being committed leaves no row behind, although
// the driver says no more than that the context has ended.
func TestAContextThatEndsDuringTheCommitLeavesNoRow(t *testing.T) {
	t.Parallel()
	for name, disabled := range map[string]bool{"Batches": false, "EachAlone": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newFixture(t, sqllock.Serializable)
				r := newRepository(t, s.pool, &sqllock.RepositoryOptions{DisableBatching: disabled})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
					if m.Op != flaky.Commit || !m.Done {
						return nil
					}
					s.connector.Follow(nil)
					cancel()
					return ctx.Err()
				})
				if _, err := r.Acquire(ctx, "k", r.NewHolder(), ttl); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				synctest.Wait()
				rows, err := r.List(t.Context())
				must(t, err)
				if len(rows) != 0 {
					t.Error(rows)
				}
			})
		})
	}
}

// So it does if the row cannot be deleted at once: it is deleted before the next acquisition.
func TestARowThatIsLeftWhenTheContextEndsIsDeletedLater(t *testing.T) {
	t.Parallel()
	for name, disabled := range map[string]bool{"Batches": false, "EachAlone": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newFixture(t, sqllock.Serializable)
				r := newRepository(t, s.pool, &sqllock.RepositoryOptions{DisableBatching: disabled})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := false
				s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
					switch {
					case ended:
						return errGone
					case m.Op == flaky.Commit && m.Done:
						ended = true
						cancel()
						return ctx.Err()
					}
					return nil
				})
				if _, err := r.Acquire(ctx, "k", r.NewHolder(), ttl); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				synctest.Wait()
				s.connector.Follow(nil)
				got, err := r.Acquire(t.Context(), "k", r.NewHolder(), ttl)
				must(t, err)
				if !got.Acquired {
					t.Error(got)
				}
			})
		})
	}
}

// TestTheContextIsDoneWhileTheLeaseEnds stops the goroutine that ends a lease, before it ends
// the context: as a process is that continues after a pause, on a busy machine.
func TestTheContextIsDoneWhileTheLeaseEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, rival := lateFixture(t, sqllock.Serializable)
		lease := held(s)
		made, cancel := context.WithCancel(lease.Context())
		defer cancel()
		let := make(chan struct{})
		defer close(let)
		sqllock.BeforeEnd(lease, func() { <-let })
		next, err := rival.Lock(t.Context()) // when the row has expired
		must(t, err)
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
