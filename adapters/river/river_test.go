package riverlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/sqllock/sqllock"
	riverlock "github.com/sqllock/sqllock/adapters/river"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sqllocktest"
)

// The tests of this file run river on PostgreSQL, in real time. Their leases last for an hour, so
// the speed of the machine does not matter.

// soon snoozes jobs for less than river's default.
var soon = &riverlock.Options{Snooze: 50 * time.Millisecond}

func newLocks(t *testing.T) *sqllocktest.Registry {
	t.Helper()
	return sqllocktest.New(t, &sqllock.RegistryOptions{TTL: time.Hour})
}

// TestJobsOfAKeyAreWorkedOneAtATime has a client with several workers.
func TestJobsOfAKeyAreWorkedOneAtATime(t *testing.T) {
	t.Parallel()
	pool := newRiver(t)
	locks := newLocks(t)
	var running atomic.Int32
	c, err := newClient(pool, riverlock.Middleware(locks.Registry, byKind, soon), func(ctx context.Context) error {
		if running.Add(1) > 1 {
			t.Error("two jobs are worked")
		}
		time.Sleep(20 * time.Millisecond) // the others come meanwhile
		running.Add(-1)
		return ctx.Err()
	})
	must(t, err)
	for events, completed := start(t, c, 4), 0; completed < 4; {
		event := <-events
		switch event.Kind {
		case river.EventKindJobCompleted:
			completed++
		case river.EventKindJobSnoozed:
		default:
			t.Fatal(event.Kind, event.Job.Errors)
		}
	}
}

// TestAHeldLockCostsNoAttempt has a lock that is held, and then a database that is down.
func TestAHeldLockCostsNoAttempt(t *testing.T) {
	t.Parallel()
	pool := newRiver(t)
	locks := newLocks(t)
	c, err := newClient(pool, riverlock.Middleware(locks.Another(), byKind, soon), func(context.Context) error { return nil })
	must(t, err)
	lease := check.Value(locks.Lock(t.Context(), "import"))(t)
	events := start(t, c, 1)
	snoozed := func() {
		t.Helper()
		for range 3 {
			if event := <-events; event.Kind != river.EventKindJobSnoozed || event.Job.Attempt != 0 {
				t.Fatal(event.Kind, event.Job.Attempt)
			}
		}
	}
	snoozed()
	locks.Break(errors.New("cut off"))
	for len(events) > 0 {
		<-events
	}
	snoozed()
	locks.Break(nil)
	must(t, lease.Unlock(t.Context()))
	event := <-events
	for event.Kind == river.EventKindJobSnoozed {
		event = <-events
	}
	if event.Kind != river.EventKindJobCompleted || event.Job.Attempt != 1 {
		t.Error(event.Kind, event.Job.Attempt)
	}
}

// TestAJobSeesTheLoss deletes the row of a job's lock, as an operator may.
func TestAJobSeesTheLoss(t *testing.T) {
	t.Parallel()
	pool := newRiver(t)
	locks := newLocks(t)
	cause := make(chan error, 1)
	c, err := newClient(pool, riverlock.Middleware(locks.Registry, byKind, nil), func(ctx context.Context) error {
		lease, err := locks.LeaseFrom(ctx, "import")
		if err != nil {
			return err
		}
		if _, err := locks.Repository().Delete(ctx, "import", lease.Holder()); err != nil {
			return err
		}
		is(t, lease.Renew(ctx), sqllock.ErrLockLost)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil
	})
	must(t, err)
	event := <-start(t, c, 1)
	is(t, <-cause, sqllock.ErrLockLost)
	if event.Kind != river.EventKindJobFailed || event.Job.State != rivertype.JobStateDiscarded {
		t.Error(event.Kind, event.Job.State)
	}
}
