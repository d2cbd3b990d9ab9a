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

// The names under which this program starts itself. They do not contain its own name,
// so that a command that kills processes by name does not kill them with it.
const (
	watchdogName = "exec-watchdog"
	gateName     = "exec-gate"
)

// HelperNames are the names for which RunHelper runs a helper. A test binary that stands
// in for the program runs the program under these names too.
var HelperNames = []string{watchdogName, gateName}
