package sqllock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lib/pq"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// tryAll has each of n callers try for a lock of its own, and returns when all have ended.
func (s *fixture) tryAll(n int, done func(*sqllock.Lease, error)) {
	s.Helper()
	var trying sync.WaitGroup
	for i := range n {
		lock := obtain(s.T, s.registry, fmt.Sprint("key ", i))
		trying.Go(func() { done(lock.TryLock(s.Context())) })
	}
	trying.Wait()
}

// A batch that gets no answer times out after five seconds, and its callers with it.
func TestABatchWithoutAnAnswerTimesOut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		s.connector.Follow(func(ctx context.Context, _ flaky.Moment) error {
			<-ctx.Done()
			return ctx.Err()
		})
		began := time.Now()
		s.tryAll(6, func(_ *sqllock.Lease, err error) {
			if !errors.Is(err, sqllock.ErrDatabase) {
				t.Error(err)
			}
		})
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("took %v", took)
		}
		s.connector.Follow(nil)
	})
}

// oneBatch has n callers try for a lock of their own, in one batch whose connection breaks.
// begun is called before every transaction that is begun after that.
func (s *fixture) oneBatch(n int, begun func(context.Context) error, done func(*sqllock.Lease, error)) {
	s.Helper()
	first := make(chan struct{})
	var transactions atomic.Int64
	s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
		if m.Op != flaky.Begin || m.Done {
			return nil
		}
		switch transactions.Add(1) {
		case 1:
			<-first // all others are batched behind it
			return nil
		case 2:
			return errGone
		default:
			return begun(ctx)
		}
	})
	var trying sync.WaitGroup
	for i := range n + 1 {
		lock := obtain(s.T, s.registry, fmt.Sprint("key ", i))
		trying.Go(func() {
			lease, err := lock.TryLock(s.Context())
			if i > 0 {
				done(lease, err)
			}
		})
		synctest.Wait()
	}
	close(first)
	trying.Wait()
	s.connector.Follow(nil)
}

// One connection that breaks under a batch must not send all of its callers to the pool at
// once: a small pool has not got so many, and a large one would use up the server's.
func TestABrokenBatchDoesNotUseUpThePool(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		const callers = 50
		var begun, open, most atomic.Int64
		s.oneBatch(callers, func(context.Context) error {
			begun.Add(1)
			if n := open.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(50 * time.Millisecond)
			open.Add(-1)
			return nil
		}, func(_ *sqllock.Lease, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		if begun.Load() != callers || most.Load() > 4 {
			t.Errorf("%d transactions begun, %d of them at once", begun.Load(), most.Load())
		}
	})
}

// If a statement that is sent alone gets no answer either, the others do not wait for turn
// after turn.
func TestADatabaseThatDoesNotAnswerAfterABrokenBatch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		began := time.Now()
		s.oneBatch(50, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, func(_ *sqllock.Lease, err error) {
			if !errors.Is(err, sqllock.ErrDatabase) {
				t.Error(err)
			}
		})
		if took := time.Since(began); took > 70*time.Second { // the time-to-live, and a bit
			t.Errorf("took %v", took)
		}
	})
}

// A slow database does answer: every caller that waits for its turn gets one.
func TestASlowDatabaseAfterABrokenBatch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		s.oneBatch(50, func(context.Context) error {
			time.Sleep(2 * time.Second)
			return nil
		}, func(_ *sqllock.Lease, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	})
}

// A lock that was found taken is looked at before it is tried again: a refused attempt locks
// the row, which the holder has to renew.
func TestATryAfterARefusedOneReadsFirst(t *testing.T) {
	t.Parallel()
	s := newFixture(t, sqllock.Serializable)
	rival, err := obtain(t, newRegistry(t, newRepository(t, s.db.DB, nil), nil), "k").TryLock(t.Context())
	must(t, err)
	var mu sync.Mutex
	var ops []flaky.Op
	s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
		if !m.Done {
			mu.Lock()
			ops = append(ops, m.Op)
			mu.Unlock()
		}
		return nil
	})
	refused := func() []flaky.Op {
		ops = nil
		_, err := s.lock.TryLock(t.Context())
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Holder != rival.Holder() {
			t.Fatal(err)
		}
		return ops
	}
	if first := refused(); !slices.Contains(first, flaky.Begin) {
		t.Errorf("the first try: %v", first)
	}
	for range 3 {
		if again := refused(); !slices.Equal(again, []flaky.Op{flaky.Query}) {
			t.Errorf("another try: %v", again)
		}
	}
	must(t, rival.Unlock(t.Context()))
	must(t, held(s).Unlock(t.Context()))
}

// What one statement has renewed does not depend on the next: of very many leases one part
// fails, and the others go on.
func TestAPartOfTheRenewalsThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const part, more = 40, 10
		s, _ := renewing(t, sqllock.RegistryOptions{})
		sqllock.RenewInBatches(s.registry, part)
		var mu sync.Mutex
		var leases []*sqllock.Lease
		s.tryAll(part+more, func(lease *sqllock.Lease, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			leases = append(leases, lease)
		})
		var queries int
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && !m.Done {
				if queries++; queries%2 == 0 {
					return errGone
				}
			}
			return nil
		})
		time.Sleep(renewalTTL + time.Second)
		synctest.Wait()
		kept := 0
		for _, lease := range leases {
			if lease.Context().Err() == nil {
				kept++
			}
		}
		if kept < part {
			t.Errorf("%d of %d leases were kept", kept, len(leases))
		}
		s.connector.Follow(nil)
	})
}

// Renewals that are answered too late leave rows without holders. To delete them must not
// delay the renewal of other leases.
func TestRowsOfLateRenewalsDoNotDelayRenewals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		// Without tokens a deletion of one row is the only Exec.
		s.registry = newRegistry(t, newRepository(t, s.pool, &sqllock.RepositoryOptions{DisableFencing: true, Isolation: sqllock.Autocommit}),
			&sqllock.RegistryOptions{TTL: renewalTTL, AutoRenew: true})
		began := time.Now()
		s.tryAll(40, func(_ *sqllock.Lease, err error) { must(t, err) })
		const lastTry = renewalTTL * 26 / 30 // of the first leases, which end half a second before renewalTTL
		s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
			switch since := time.Since(began); {
			case m.Op == flaky.Exec && !m.Done: // deletes one row
				<-ctx.Done()
				return ctx.Err()
			case m.Op == flaky.Query && !m.Done && since < lastTry:
				return errGone
			case m.Op == flaky.Query && !m.Done && since < renewalTTL:
				time.Sleep(renewalTTL - since)
			}
			return nil
		})
		time.Sleep(renewalTTL - 100*time.Millisecond)
		lease, err := obtain(t, s.registry, "another").TryLock(t.Context())
		must(t, err)
		time.Sleep(3 * renewalTTL)
		must(t, lease.Context().Err())
		s.connector.Follow(nil)
	})
}

// Many releases of rows that are pinned do not take a connection each.
func TestPinnedRowsAreReleasedAFewAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		r, err := sqllock.NewRepository(t.Context(), s.pool.DB, dialect.Postgres(), &sqllock.RepositoryOptions{Layout: dialect.Spring7})
		must(t, err)
		var now, most atomic.Int64
		s.connector.Follow(func(_ context.Context, _ flaky.Moment) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			time.Sleep(250 * time.Millisecond)
			return &pq.Error{Code: "55P03"}
		})
		var releasing sync.WaitGroup
		for i := range 30 {
			releasing.Go(func() {
				if _, err := r.Delete(t.Context(), fmt.Sprint(i), r.NewHolder()); !errors.Is(err, sqllock.ErrPinned) {
					t.Error(err)
				}
			})
		}
		releasing.Wait()
		s.connector.Follow(nil)
		const alone, batches = 4, 4
		if n := most.Load(); n > alone+batches {
			t.Errorf("%d statements at the same time", n)
		}
	})
}
