package sqllock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// Calls end with the lease's deadline, as it was when they were sent. If AutoRenew has
// prolonged the lease meanwhile, that is no end of the caller's context. (The simulation
// found an error of no kind.)
func TestACallThatTheHeartbeatOvertakesIsADatabaseError(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *fixture, *sqllock.Lease) error{
		"Renew": func(ctx context.Context, s *fixture, lease *sqllock.Lease) error {
			s.connector.Follow(firstHangs)
			return lease.Renew(ctx)
		},
		"Guard": func(ctx context.Context, s *fixture, lease *sqllock.Lease) error {
			tx, err := s.pool.BeginTxx(ctx, nil)
			must(s.T, err)
			defer func() { _ = tx.Rollback() }()
			s.connector.Follow(firstHangs)
			return lease.Guard(ctx, tx)
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, p := renewing(t, sqllock.RegistryOptions{})
				lease := held(s)
				err := call(t.Context(), s, lease)
				must(t, lease.Context().Err())
				if p.good.Load() < 2 {
					t.Fatalf("%d renewals: the call was not overtaken", p.good.Load())
				}
				if !errors.Is(err, sqllock.ErrDatabase) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sqllock.ErrLockLost) {
					t.Errorf("error %v", err)
				}
				must(t, lease.Unlock(t.Context()))
			})
		})
	}
}

// firstHangs has the first operation wait until its context ends.
func firstHangs(ctx context.Context, m flaky.Moment) error {
	if m.N > 1 || m.Done {
		return nil
	}
	<-ctx.Done()
	time.Sleep(time.Millisecond) // whatever ends in the same instant has ended
	return ctx.Err()
}

// The same for what is reported: while a row's own renewal waits for it, the caller prolongs the
// lease, and the registry learns that the row's renewal has had no answer.
func TestARenewalThatTheCallerOvertakesIsADatabaseError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var errs []error
		lease, mock, passedOver := renewedBeside(t, &errs)
		passedOver() // after a third of the TTL, and again after 23/30
		mock.ExpectExec("UPDATE").WillDelayFor(time.Hour).WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectQuery("WITH").WillDelayFor(renewalTTL / 30).WillReturnError(errGone)
		mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1)) // the caller's
		passedOver()
		mock.ExpectExec("DELETE").WillReturnResult(sqlmock.NewResult(0, 1))
		began := lease.Deadline()
		time.Sleep(renewalTTL * 22 / 30)
		must(t, lease.Renew(t.Context()))
		if extended := lease.Deadline().Sub(began); extended < renewalTTL/2 {
			t.Errorf("extended by %v", extended)
		}
		time.Sleep(renewalTTL * 9 / 30)
		synctest.Wait()
		if len(errs) != 3 || !errors.Is(errs[2], sqllock.ErrDatabase) || !errors.Is(errs[2], context.DeadlineExceeded) {
			t.Errorf("the renewals reported %v", errs)
		}
		must(t, lease.Context().Err())
		must(t, lease.Unlock(t.Context()))
	})
}
