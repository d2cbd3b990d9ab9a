package contract

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAttempts runs tests on machines that stand still.
func TestAttempts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		still    time.Duration // for which the machine stands still
		failures int           // attempts that fail
		passes   bool
		patience []time.Duration
	}{
		"passes":                           {0, 0, true, []time.Duration{1}},
		"fails":                            {spoils - 1, 1, false, []time.Duration{1}},
		"fails twice as nothing runs":      {spoils, 2, true, []time.Duration{1, 2, 4}},
		"fails whether or not it has time": {spoils, 9, false, []time.Duration{1, 2, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var patience []time.Duration
			failures := test.failures
			passed := Cell{}.attempts(t, func(time.Time, time.Time) time.Duration { return test.still }, testOf(func(f *fixture) {
				if patience = append(patience, f.patience); failures > 0 {
					failures--
					f.must(errors.New("a failure that this test wants"))
				}
			}))
			if passed != test.passes || !slices.Equal(patience, test.patience) {
				t.Errorf("passed: %t, patience %v", passed, patience)
			}
		})
	}
}

func testOf(run func(*fixture)) test { return test{"test", run} }

// TestAttemptFails fails an attempt in each way. What comes after Fatal does not run; cleanups do, the
// last first, with an ended context.
func TestAttemptFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*attempt){
		"Error":  func(a *attempt) { a.Error("no", "good") },
		"Errorf": func(a *attempt) { a.Errorf("no %s", "good") },
		"Fatal":  func(a *attempt) { a.Fatal("no", "good") },
		"Fatalf": func(a *attempt) { a.Fatalf("no %s", "good") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cleaned []int
			goesOn := false
			a := attemptOf(t, func(a *attempt) {
				for n := range 3 {
					a.Cleanup(func() {
						if a.Context().Err() == nil {
							t.Error("the context has not ended")
						}
						if cleaned = append(cleaned, n); n == 1 {
							fail(a)
						}
					})
				}
				fail(a)
				goesOn = true
			})
			if !a.Failed() || goesOn == strings.HasPrefix(name, "Fatal") || !slices.Equal(cleaned, []int{2, 1, 0}) {
				t.Errorf("failed: %t, went on: %t, cleanups %v", a.Failed(), goesOn, cleaned)
			}
			if len(a.log) != 2 || !strings.HasSuffix(a.log[0], ": no good") || !strings.HasPrefix(a.log[0], "attempt_test.go:") {
				t.Errorf("log %q", a.log)
			}
		})
	}
}
