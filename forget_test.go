package sqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// An acquisition that failed, and whose row was not there afterwards, is not remembered
// for as long as a lease would have lasted.
func TestAHolderWithoutARowIsForgottenSoon(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Commit && !m.Done {
				return errGone
			}
			return nil
		})
		registry := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Hour})
		for i := range 20 {
			if _, err := obtain(t, registry, fmt.Sprint(i)).TryLock(t.Context()); !errors.Is(err, sqllock.ErrDatabase) {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		s.connector.Follow(nil)
		must(t, registry.Close(t.Context()))
		if n := s.connector.Count(); n > 0 {
			t.Errorf("%d statements to delete rows that were never written", n)
		}
	})
}

// A row that could not be deleted is, for as long as it lasts.
func TestAHolderWhoseRowMayBeThereIsRemembered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		registry := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Hour})
		lease, err := obtain(t, registry, "k").TryLock(t.Context())
		must(t, err)
		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		if err := lease.Unlock(t.Context()); !errors.Is(err, sqllock.ErrDatabase) {
			t.Fatal(err)
		}
		s.connector.Follow(nil)
		time.Sleep(time.Hour - time.Minute)
		lease, err = obtain(t, registry, "k").TryLock(t.Context())
		must(t, err)
		must(t, lease.Unlock(t.Context()))
	})
}

// Keys whose rows were found pinned are not kept for ever.
// It takes seconds beside other tests, because it collects garbage until none of the keys is left.
func TestPinnedKeysAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pool := sqlx.NewDb(sql.OpenDB(pinned{}), "postgres")
		defer pool.Close()
		var mu sync.Mutex
		var mapped []weak.Pointer[byte]
		r, err := sqllock.NewRepository(t.Context(), pool.DB, dialect.Postgres(), &sqllock.RepositoryOptions{
			Layout: dialect.Spring7, Isolation: sqllock.Autocommit,
			Keys: func(key string) (string, error) {
				lockKey := fmt.Sprintf("%36s", key)
				mu.Lock()
				defer mu.Unlock()
				mapped = append(mapped, weak.Make(unsafe.StringData(lockKey)))
				return lockKey, nil
			},
		})
		must(t, err)
		const rounds, atOnce = 6, 50
		round := func(number int) {
			var trying sync.WaitGroup
			for i := range atOnce {
				trying.Go(func() {
					got, err := r.Acquire(t.Context(), fmt.Sprint(number, " ", i), "holder", ttl)
					if got.Acquired || !errors.Is(err, sqllock.ErrDatabase) { // the row cannot be read either
						t.Error(got, err)
					}
				})
			}
			trying.Wait()
		}
		for number := range rounds {
			round(number)
		}
		time.Sleep(time.Minute)
		round(rounds)
		runtime.GC()
		alive := 0
		for _, key := range mapped[:rounds*atOnce] {
			if key.Value() != nil {
				alive++
			}
		}
		runtime.KeepAlive(r)
		if alive > rounds*atOnce/2 {
			t.Errorf("%d of %d keys are kept", alive, rounds*atOnce)
		}
	})
}

// pinned connects to a database in which every row is pinned.
type pinned struct{}

func (pinned) Connect(context.Context) (driver.Conn, error) { return pinned{}, nil }
func (pinned) Driver() driver.Driver                        { return nil }
func (pinned) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (pinned) Begin() (driver.Tx, error)                    { return nil, errors.ErrUnsupported }
func (pinned) Close() error                                 { return nil }

func (pinned) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	time.Sleep(10 * time.Millisecond) // so that those who come meanwhile are batched
	return nil, &pq.Error{Code: "55P03", Message: "canceling statement due to lock timeout"}
}
