// Package testmain has the TestMain of most packages.
package testmain

import (
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// Run runs the tests of a package, fails if they leave goroutines behind, and exits.
//
// With the race detector, os.Exit sleeps for a second: some goroutine might still have a race
// to report. There are no goroutines any more, and m.Run has counted the races, so Run
// exits at once.
func Run(m *testing.M, options ...goleak.Option) {
	goleak.VerifyTestMain(m, append(options, goleak.Cleanup(syscall.Exit))...)
}
