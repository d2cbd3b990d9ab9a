package registry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lib/pq"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/test/check"
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

// A batch that gets no answer times out after five seconds, or later in the tests on servers, and its callers with it.
func TestBatch_WithoutAnAnswerTimesOut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, limit := range []time.Duration{5 * time.Second, time.Minute} {
			s := newFixture(t, sqllock.Serializable)
			repository := check.Value(sqllock.NewRepository(dbcall.WithTestPatience(t.Context(), limit-1), s.pool.DB, dialect.SQLite(), nil))(t)
			s.registry = newRegistry(t, repository, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true})
			s.connector.Follow(func(ctx context.Context, _ flaky.Moment) error {
				<-ctx.Done()
				return ctx.Err()
			})
			began := time.Now()
			s.tryAll(6, func(_ *sqllock.Lease, err error) {
				is(t, err, sqllock.ErrDatabase)
			})
			check.Takes(t, "the call", began, limit-1, limit+2*time.Second)
			s.connector.Follow(nil)
		}
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

// One connection that breaks under a batch must not send all of its callers to the pool at once: a small
// pool has not got so many, and a large one would use up the server's. If the database is slow then, every
// caller gets its turn. If it does not answer the first ones either, the others do not wait for turn after turn.
func TestBatch_Broken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers time.Duration // 0: never
		limit   time.Duration
	}{
		"quick": {50 * time.Millisecond, 2 * time.Second}, "slow": {2 * time.Second, ttl}, "no answer": {0, ttl + 10*time.Second},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Serializable)
			const callers = 50
			var begun, open, most atomic.Int64
			began := time.Now()
			s.oneBatch(callers, func(ctx context.Context) error {
				begun.Add(1)
				most.Store(max(most.Load(), open.Add(1)))
				defer open.Add(-1)
				if test.answers == 0 {
					<-ctx.Done()
					return ctx.Err()
				}
				time.Sleep(test.answers)
				return nil
			}, func(_ *sqllock.Lease, err error) {
				if (err == nil) != (test.answers > 0) || err != nil && !errors.Is(err, sqllock.ErrDatabase) {
					t.Error(err)
				}
			})
			if took := time.Since(began); took > test.limit || most.Load() > 4 || test.answers > 0 && begun.Load() != callers {
				t.Errorf("%d transactions begun, %d of them at once, in %v", begun.Load(), most.Load(), took)
			}
		})
	}
}

// Many releases of rows that are pinned do not take a connection each.
func TestBatch_PinnedRowsAreReleasedAFewAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		r := check.Value(sqllock.NewRepository(t.Context(), s.pool.DB, dialect.Postgres(), &sqllock.RepositoryOptions{Layout: dialect.Spring7}))(t)
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
				is(t, check.ErrorOf(r.Delete(t.Context(), fmt.Sprint(i), r.NewHolder())), sqllock.ErrPinned)
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
