package sqllocktest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sqllocktest"
)

var (
	must = check.Must
	is   = check.Is
)

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, opts *sqllock.RegistryOptions, test func(t *testing.T, r *sqllocktest.Registry)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, sqllocktest.New(t, opts)) })
}

// TestInRealTime acquires outside of a bubble, where waiting is real.
func TestInRealTime(t *testing.T) {
	t.Parallel()
	r := sqllocktest.New(t, &sqllock.RegistryOptions{TTL: time.Minute, IdleBetweenTries: time.Millisecond, NoRenew: true})
	lease := lock(t, r.Registry)
	acquired := make(chan error, 1)
	other := r.Another()
	go func() {
		second, err := other.Lock(t.Context(), "k")
		acquired <- errors.Join(err, second.Unlock(t.Context()))
	}()
	must(t, lease.Unlock(t.Context()))
	must(t, <-acquired)
}

func TestLose(t *testing.T) {
	t.Parallel()
	for _, autoRenew := range []bool{false, true} {
		t.Run(fmt.Sprintf("AutoRenew=%t", autoRenew), func(t *testing.T) {
			inBubble(t, &sqllock.RegistryOptions{NoRenew: !autoRenew}, func(t *testing.T, r *sqllocktest.Registry) {
				for _, process := range []*sqllock.Registry{r.Registry, r.Another()} {
					began := time.Now()
					lease := lock(t, process)
					r.Lose("k")
					is(t, context.Cause(lease.Context()), sqllock.ErrLockLost)
					is(t, lease.Unlock(t.Context()), sqllock.ErrLockLost)
					if d := time.Since(began); autoRenew && d > sqllock.DefaultTTL/2 || d > sqllock.DefaultTTL {
						t.Errorf("noticed after %v", d)
					}
					time.Sleep(sqllock.DefaultTTL - time.Second)
					_, err := r.TryLock(t.Context(), "k")
					var held *sqllock.HeldError
					if !errors.As(err, &held) || !strings.HasPrefix(held.Holder, "taker-") {
						t.Error(err)
					}
					time.Sleep(2 * sqllock.DefaultTTL) // until its row has expired
				}
				must(t, lock(t, r.Registry).Unlock(t.Context()))
			})
		})
	}
}

// TestLoseWhileTheDatabaseIsBroken has a holder that can neither renew nor read its row.
func TestLoseWhileTheDatabaseIsBroken(t *testing.T) {
	inBubble(t, &sqllock.RegistryOptions{}, func(t *testing.T, r *sqllocktest.Registry) {
		lease := lock(t, r.Registry)
		r.Break(errors.New("cut off"))
		r.Lose("k")
		is(t, context.Cause(lease.Context()), sqllock.ErrLockLost)
	})
}

func TestBreak(t *testing.T) {
	inBubble(t, &sqllock.RegistryOptions{}, func(t *testing.T, r *sqllocktest.Registry) {
		cutOff := errors.New("cut off")
		lease := lock(t, r.Registry)
		other := r.Another()
		r.Break(cutOff)
		for _, process := range []*sqllock.Registry{r.Registry, other} {
			_, err := process.TryLock(t.Context(), "other")
			is(t, err, sqllock.ErrDatabase)
			is(t, err, cutOff)
		}
		<-lease.Context().Done()
		is(t, context.Cause(lease.Context()), sqllock.ErrLockLost)
		if now, deadline := time.Now(), lease.Deadline(); !now.Equal(deadline) {
			t.Errorf("lost %v after the deadline", now.Sub(deadline))
		}
		r.Break(nil)
		again := check.Value(r.Lock(t.Context(), "k"))(t) // the row has still to expire
		must(t, again.Unlock(t.Context()))
	})
}

// TestCleanups calls all functions in a cleanup, when the context of the test has ended.
func TestCleanups(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *sqllocktest.Registry) {
		t.Cleanup(func() {
			lease := check.Value(r.Another().TryLock(context.WithoutCancel(t.Context()), "k"))(t)
			r.Lose("k")
			is(t, context.Cause(lease.Context()), sqllock.ErrLockLost)
		})
	})
}

// TestDB commits a transaction of the test's own table under a lock.
func TestDB(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *sqllocktest.Registry) {
		must(t, check.ErrorOf(r.DB().ExecContext(t.Context(), "CREATE TABLE ORDERS (N INTEGER)")))
		must(t, r.ExecuteLockedTx(t.Context(), "k", r.DB(), nil, func(ctx context.Context, tx *sql.Tx) error {
			return check.ErrorOf(tx.ExecContext(ctx, "INSERT INTO ORDERS VALUES (42)"))
		}))
		var n sql.NullInt64
		must(t, r.DB().QueryRowContext(t.Context(), "SELECT N FROM ORDERS").Scan(&n))
		if n.Int64 != 42 {
			t.Error(n)
		}
	})
}

func lock(t *testing.T, r *sqllock.Registry) *sqllock.Lease {
	t.Helper()
	return check.Value(r.TryLock(t.Context(), "k"))(t)
}
