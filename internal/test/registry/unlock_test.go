package registry_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// Spring's testTransientDataAccessException: a release that lost a race is tried
// again, and ends unlocked.
func TestUnlock_LostRaceIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Autocommit)
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
		lease := try(t, obtain(t, newRegistry(t, r, nil), "k"))
		mock.ExpectExec("DELETE").WillReturnError(&pq.Error{Code: "40P01"})
		mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(1))
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
