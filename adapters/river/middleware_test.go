package riverlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/sqllock/sqllock"
	riverlock "github.com/sqllock/sqllock/adapters/river"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sqllocktest"
)

// work calls the middleware as river does.
func work(t *testing.T, registry *sqllock.Registry, key string, opts *riverlock.Options, fn func(context.Context) error) error {
	t.Helper()
	middleware := riverlock.Middleware(registry, byKind, opts)
	if !middleware.IsMiddleware() {
		t.Error("no middleware")
	}
	return middleware.Work(t.Context(), &rivertype.JobRow{Kind: key}, fn)
}

// TestErrorsOfTheJob cost an attempt: its own error, about a lock of its own as well, and bad input.
func TestErrorsOfTheJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, nil)
		own := &sqllock.HeldError{Key: "import", Left: time.Hour}
		failing := func(context.Context) error { return own }
		for _, test := range []struct {
			key    string
			opts   *riverlock.Options
			wanted error
		}{
			{"import", nil, own},
			{"", nil, own},
			{"\xff", nil, sqllock.ErrInvalid},
			{"import", &riverlock.Options{Wait: -1}, sqllock.ErrInvalid},
			{"import", &riverlock.Options{Snooze: -1}, sqllock.ErrInvalid},
		} {
			err := work(t, locks.Registry, test.key, test.opts, failing)
			is(t, err, test.wanted)
			if errors.Is(err, &river.JobSnoozeError{}) {
				t.Error("snoozed: ", err)
			}
		}
		is(t, work(t, nil, "import", nil, failing), sqllock.ErrInvalid)
		must(t, work(t, locks.Registry, "import", nil, func(context.Context) error {
			locks.Break(errors.New("cut off")) // so that the release fails
			return nil
		}))
	})
}

// TestSnoozes has a job that cannot be worked now.
func TestSnoozes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, &sqllock.RegistryOptions{TTL: time.Minute})
		never := func(context.Context) error { //nolint:unparam // what a job is
			t.Error("it was worked")
			return nil
		}
		snoozed := func(opts *riverlock.Options, wanted error, least, most time.Duration) {
			t.Helper()
			err := work(t, locks.Registry, "import", opts, never)
			is(t, err, wanted)
			var snooze *river.JobSnoozeError
			if !errors.As(err, &snooze) || snooze.Duration < least || snooze.Duration > most {
				t.Error(err)
			}
		}
		lease := check.Value(locks.Another().Lock(t.Context(), "import"))(t)
		time.Sleep(30 * time.Second)
		snoozed(nil, sqllock.ErrNotAcquired, 29*time.Second, 30*time.Second)
		snoozed(&riverlock.Options{Snooze: time.Hour}, sqllock.ErrNotAcquired, time.Hour, time.Hour)
		began := time.Now()
		snoozed(&riverlock.Options{Wait: 29500 * time.Millisecond}, sqllock.ErrNotAcquired, time.Second, time.Second)
		if waited := time.Since(began); waited < 29500*time.Millisecond {
			t.Error(waited)
		}
		is(t, lease.Unlock(t.Context()), sqllock.ErrLockLost)
		cutOff := errors.New("cut off")
		locks.Break(cutOff)
		snoozed(nil, cutOff, time.Second, time.Second)
		locks.Break(nil)
		must(t, locks.Close(t.Context()))
		snoozed(nil, sqllock.ErrClosed, time.Second, time.Second)
	})
}
