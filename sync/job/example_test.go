package job_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sqllocktest"
	"github.com/sqllock/sqllock/sync/job"
)

// reports is the beginning of docs/jobs.md.
func reports(ctx context.Context, registry *sqllock.Registry) error {
	report := job.New(registry, "report", 30*time.Second, func(ctx context.Context) error {
		return sendReport(ctx) // stop when ctx ends: another instance may run the job soon after
	})
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := report(ctx); err != nil && !errors.Is(err, sqllock.ErrNotAcquired) {
				slog.ErrorContext(ctx, "report", "error", err) // the next run is a try of its own
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var sendReport func(context.Context) error

// TestReports runs the beginning of docs/jobs.md on two instances for an hour.
//
//nolint:paralleltest // sendReport is a variable of the package
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		sent := 0
		sendReport = func(context.Context) error {
			if sent++; sent == 1 {
				return errors.New("a report that fails ends no loop")
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour+time.Second)
		defer cancel()
		other := make(chan error)
		go func() {
			time.Sleep(10 * time.Second)
			other <- reports(ctx, r.Another())
		}()
		is(t, reports(ctx, r.Registry), context.DeadlineExceeded)
		is(t, <-other, context.DeadlineExceeded)
		if sent != 60 {
			t.Errorf("%d reports in an hour", sent)
		}
	})
}
