package gocronlock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/gocronlock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sqllocktest"
	"github.com/sqllock/sqllock/sync/job"
)

func TestMain(m *testing.M) { testmain.Run(m) }

var (
	must = check.Must
	is   = check.Is
)

// The interfaces of gocron v2.21.2.
type (
	lock interface {
		Unlock(ctx context.Context) error
	}
	locker interface {
		Lock(ctx context.Context, key string) (lock, error)
	}
)

var _ locker = (*gocronlock.Locker[lock])(nil)

// inBubble runs a test in virtual time, with the lockers of two instances.
func inBubble(t *testing.T, opts *gocronlock.Options, test func(t *testing.T, r *sqllocktest.Registry, first, second locker)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		test(t, r, gocronlock.New[lock](r.Registry, opts), gocronlock.New[lock](r.Another(), opts))
	})
}

// TestALongJobIsNotRunTwice holds a lock for many times the time-to-live.
func TestALongJobIsNotRunTwice(t *testing.T) {
	inBubble(t, &gocronlock.Options{Prefix: "cron/"}, func(t *testing.T, r *sqllocktest.Registry, first, second locker) {
		ctx, cancel := context.WithCancel(t.Context())
		held := check.Value(first.Lock(ctx, "report"))(t)
		if now := r.Held(); len(now) != 1 || now[0].Key != "cron/report" {
			t.Errorf("%+v", now)
		}
		time.Sleep(2 * time.Minute)
		refused, err := second.Lock(t.Context(), "report")
		is(t, err, sqllock.ErrNotAcquired)
		if refused != nil {
			t.Error("a lock in spite of an error")
		}
		cancel()
		must(t, held.Unlock(ctx)) // gocron's context may have ended
		held = check.Value(second.Lock(t.Context(), "report"))(t)
		must(t, held.Unlock(t.Context()))
	})
}

// newTask returns a literal, and the compiler inlines it.
func newTask(n int) func() int { return func() int { return n } }

// nameOf returns what gocron calls a job without a name.
func nameOf(task any) string { return runtime.FuncForPC(reflect.ValueOf(task).Pointer()).Name() }

func TestErrors(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *sqllocktest.Registry, first, _ locker) {
		names := []string{
			"", "main.main.func1", "example.com/app.(*Server).Start.func2.1", "main.init.func3.1.2",
			"main.main.func1.newTask.2", "main.main.func1.newTask[...].3", // newTask is inlined
			"main.newTask.1", "main.deep.1.1", "main.gen[...].1", "example.com/app.(*Server).Start.2", // so since Go 1.27
			nameOf(newTask(1)), func() string { return nameOf(newTask(2)) }(),
		}
		for _, name := range names {
			is(t, check.ErrorOf(first.Lock(t.Context(), name)), sqllock.ErrInvalid)
		}
		for _, name := range []string{"main.report", "example.com/app.(*Server).report-fm", "report.func", "tenant.2", "invoice.tenant.2", "jobs/tenant.2"} {
			must(t, check.Value(first.Lock(t.Context(), name))(t).Unlock(t.Context()))
		}
		type more interface {
			lock
			Extend()
		}
		is(t, check.ErrorOf(gocronlock.New[more](r.Registry, &gocronlock.Options{MinHold: time.Hour}).Lock(t.Context(), "report")), sqllock.ErrInvalid)
		held := check.Value(first.Lock(t.Context(), "report"))(t) // not kept by the minimum hold
		must(t, held.Unlock(t.Context()))
		is(t, check.ErrorOf(gocronlock.New[lock](r.Registry, &gocronlock.Options{MinHold: -1}).Lock(t.Context(), "report")), sqllock.ErrInvalid)
		is(t, check.ErrorOf(gocronlock.New[lock](nil, nil).Lock(t.Context(), "report")), sqllock.ErrInvalid)
		cutOff := errors.New("cut off")
		r.Break(cutOff)
		is(t, check.ErrorOf(first.Lock(t.Context(), "report")), cutOff)
	})
}

// TestARefusalIsLogged has gocron name a task of package job, which locks by itself: it runs on no instance,
// and gocron drops the error.
func TestARefusalIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		r := sqllocktest.New(t, &sqllock.RegistryOptions{Observers: []*observe.Observer{
			observe.SlogObserver(slog.New(slog.NewTextHandler(&text, nil))), nil,
		}, NoRenew: true})
		task := job.New(r.Registry, "report", 0, func(context.Context) error { return nil })
		name := runtime.FuncForPC(reflect.ValueOf(task).Pointer()).Name() // as gocron does
		is(t, check.ErrorOf(gocronlock.New[lock](r.Registry, nil).Lock(t.Context(), name)), sqllock.ErrInvalid)
		is(t, job.New(r.Registry, "negative", -1, func(context.Context) error { return nil })(t.Context()), sqllock.ErrInvalid)
		own := job.New(r.Registry, "own", 0, func(context.Context) error { return sqllock.ErrInvalid })
		is(t, own(t.Context()), sqllock.ErrInvalid)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		for i, want := range []string{"gocron.WithDisabledDistributedJobLocker", "key=negative"} {
			if len(lines) != 2 || !strings.Contains(lines[i], want) || !strings.Contains(lines[i], "level=ERROR") {
				t.Errorf("%d lines, no %q: %s", len(lines), want, text.String())
			}
		}
	})
}
