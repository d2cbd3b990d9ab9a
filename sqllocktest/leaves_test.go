package sqllocktest_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sqllocktest"
)

// A recorder is a test whose failures a test looks at.
type recorder struct {
	testing.TB
	cleanups []func()
	failures []string
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Failed() bool { return len(r.failures) > 0 }

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// run runs a test to its end, and returns its failures.
func (r *recorder) run(test func(*recorder)) []string {
	ended := make(chan bool)
	go func() {
		defer close(ended)
		test(r)
	}()
	<-ended
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
	return r.failures
}

func TestATestThatLeavesALeaseFails(t *testing.T) {
	t.Parallel()
	for name, process := range map[string]func(*sqllocktest.Registry) *sqllock.Registry{
		"its own":   func(r *sqllocktest.Registry) *sqllock.Registry { return r.Registry },
		"another's": func(r *sqllocktest.Registry) *sqllock.Registry { return r.Another() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures := (&recorder{TB: t}).run(func(tb *recorder) {
				lock(t, process(sqllocktest.New(tb, nil)))
			})
			if len(failures) != 1 || !strings.Contains(failures[0], `the lock of "k" is still held`) {
				t.Errorf("%q", failures)
			}
		})
	}
}

// TestAFailedTestMayLeaveALease has a test end early, with a broken database: its first failure is
// what matters.
func TestAFailedTestMayLeaveALease(t *testing.T) {
	t.Parallel()
	failures := (&recorder{TB: t}).run(func(tb *recorder) {
		r := sqllocktest.New(tb, nil)
		lock(t, r.Registry)
		r.Break(errors.New("cut off"))
		tb.Fatalf("failed")
	})
	if len(failures) != 1 || failures[0] != "failed" {
		t.Errorf("%q", failures)
	}
}

func TestATestThatLeavesNothingPasses(t *testing.T) {
	t.Parallel()
	failures := (&recorder{TB: t}).run(func(tb *recorder) {
		r := sqllocktest.New(tb, nil)
		must(t, lock(t, r.Registry).Unlock(t.Context()))
		r.Break(errors.New("still broken at the end"))
	})
	check.Same(t, "failures", failures, nil)
}

func TestLoseNeedsAHolder(t *testing.T) {
	t.Parallel()
	failures := (&recorder{TB: t}).run(func(tb *recorder) { sqllocktest.New(tb, nil).Lose("k") })
	if len(failures) != 1 || !strings.Contains(failures[0], `the lock of "k" is not held`) {
		t.Errorf("%q", failures)
	}
}

func TestBadOptionsEndTheTest(t *testing.T) {
	t.Parallel()
	failures := (&recorder{TB: t}).run(func(tb *recorder) { sqllocktest.New(tb, &sqllock.RegistryOptions{TTL: 1, NoRenew: true}) })
	if len(failures) != 1 || !strings.Contains(failures[0], sqllock.ErrInvalid.Error()) {
		t.Errorf("%q", failures)
	}
}
