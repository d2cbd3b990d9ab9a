// Package check has the checks of errors that most tests make.
package check

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// Must ends the test if there is an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Long skips a test that takes much processor time with -short.
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("SKIPPED with -short: it takes long")
	}
}

// Value returns the value of a call that must succeed: check.Value(registry.Obtain("k"))(t). If the call has
// failed, it ends the test.
func Value[V any](value V, err error) func(testing.TB) V {
	return func(tb testing.TB) V {
		tb.Helper()
		Must(tb, err)
		return value
	}
}

// ErrorOf returns the error of a call that also returns something else.
func ErrorOf[V any](_ V, err error) error { return err }

// Is reports a failure of the test if err does not wrap all that are wanted. nil is wanted of a call that must succeed.
func Is(tb testing.TB, err error, wanted ...error) {
	tb.Helper()
	for _, one := range wanted {
		if !errors.Is(err, one) {
			tb.Errorf("error %v, want %v", err, one)
		}
	}
}

// IsNot reports a failure of the test if err wraps one of the others.
func IsNot(tb testing.TB, err error, others ...error) {
	tb.Helper()
	for _, other := range others {
		if errors.Is(err, other) {
			tb.Errorf("error %v is %v", err, other)
		}
	}
}

// Equal reports a failure of the test if a value is not the one that is wanted.
func Equal[V comparable](tb testing.TB, what string, got, want V) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// Same reports a failure of the test if a list has not the elements that are wanted, in their order.
func Same[V comparable](tb testing.TB, what string, got, want []V) {
	tb.Helper()
	if !slices.Equal(got, want) {
		tb.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// Contains reports each of some texts that is not in another one.
func Contains(tb testing.TB, text string, wanted ...string) {
	tb.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			tb.Errorf("no %q in %s", want, text)
		}
	}
}

// Takes reports a failure of the test if less or more than so much time has passed since an instant.
func Takes(tb testing.TB, what string, began time.Time, least, most time.Duration) {
	tb.Helper()
	if d := time.Since(began); d < least || d > most {
		tb.Errorf("%s took %v, want %v to %v", what, d, least, most)
	}
}

// Begin calls a function in a goroutine of its own, and returns what receives its error.
func Begin(call func() error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- call() }()
	return ended
}
