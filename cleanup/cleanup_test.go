package cleanup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cleanup"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/sqllocktest"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// inBubble runs a test in virtual time, with a registry that has two expired rows and one unused lock.
func inBubble(t *testing.T, test func(t *testing.T, r *sqllocktest.Registry)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		for _, key := range []string{"a", "b"} {
			check.Must(t, check.ErrorOf(r.Repository().Acquire(t.Context(), key, r.Repository().NewHolder(), sqllock.MinTTL)))
		}
		check.Must(t, check.ErrorOf(r.Obtain("unused")))
		time.Sleep(time.Second)
		test(t, r)
	})
}

func logger(to *bytes.Buffer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
}

func TestOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		var log bytes.Buffer
		opts := &cleanup.Options{Age: time.Nanosecond, Logger: logger(&log, slog.LevelInfo)}
		got := check.Value(cleanup.Once(t.Context(), r.Registry, opts))(t)
		if got != (cleanup.Result{Forgotten: 1, Deleted: 2}) {
			t.Fatalf("%+v", got)
		}
		if line := log.String(); !strings.Contains(line, "level=INFO") || !strings.Contains(line, "forgotten=1 deleted=2") {
			t.Fatal(line)
		}
		log.Reset()
		got = check.Value(cleanup.Once(t.Context(), r.Registry, opts))(t)
		if got != (cleanup.Result{}) || log.Len() != 0 {
			t.Fatalf("%+v %s", got, log.String())
		}
	})
}

func TestOnceReportsErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		cutOff := errors.New("cut off")
		r.Break(cutOff)
		var log bytes.Buffer
		got, err := cleanup.Once(t.Context(), r.Registry, &cleanup.Options{Age: time.Nanosecond, Logger: logger(&log, slog.LevelInfo)})
		check.Is(t, err, cutOff)
		if got.Forgotten != 1 || !strings.Contains(log.String(), "level=WARN") {
			t.Fatalf("%+v, %s", got, log.String())
		}
	})
}

func TestBadOptions(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		for _, opts := range []*cleanup.Options{{Interval: -1}, {Age: -1}} {
			check.Is(t, check.ErrorOf(cleanup.Once(t.Context(), r.Registry, opts)), sqllock.ErrInvalid)
			check.Is(t, cleanup.Run(t.Context(), r.Registry, opts), sqllock.ErrInvalid)
		}
	})
}

func TestRunRepeatsUntilItsContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		ctx, cancel := context.WithCancel(t.Context())
		var log bytes.Buffer
		ended := check.Begin(func() error {
			return cleanup.Run(ctx, r.Registry, &cleanup.Options{Interval: time.Minute, Age: time.Hour, Logger: logger(&log, slog.LevelDebug)})
		})
		shows := func(want string) {
			t.Helper()
			synctest.Wait()
			if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, want) {
				t.Errorf("%q, want %q", line, want)
			}
			log.Reset()
		}
		shows("deleted=2")
		for _, round := range []struct {
			outage error
			shows  string
		}{{nil, "deleted=0"}, {errors.New("cut off"), "level=WARN"}, {nil, "deleted=0"}} {
			r.Break(round.outage)
			time.Sleep(time.Minute)
			shows(round.shows)
		}
		cancel()
		check.Is(t, <-ended, context.Canceled)
	})
}

func TestRunEndsWithTheRegistry(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		check.Must(t, r.Close(t.Context()))
		check.Is(t, cleanup.Run(t.Context(), r.Registry, nil), sqllock.ErrClosed)
	})
}
