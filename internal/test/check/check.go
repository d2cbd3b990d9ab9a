// Package check has the checks of errors that most tests make.
package check

import (
	"errors"
	"testing"
)

// Must ends the test if there is an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Is reports a failure of the test if err does not wrap wanted.
func Is(tb testing.TB, err, wanted error) {
	tb.Helper()
	if !errors.Is(err, wanted) {
		tb.Errorf("error %v, want %v", err, wanted)
	}
}
