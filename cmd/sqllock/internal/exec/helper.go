package exec

import (
	"os"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// RunHelper runs a helper if this process was started as one, and does not return then.
// The main function calls it first: exec starts its own program again as a helper.
func RunHelper() {
	switch {
	case isWatchdog():
		runWatchdog(os.Stdin, os.Stdout)
		os.Exit(0)
	case isGate():
		runGate()
		os.Exit(exit.CannotRun)
	}
}
