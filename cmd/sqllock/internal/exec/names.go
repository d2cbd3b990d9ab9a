package exec

// The names under which this program starts itself. They do not contain its own name,
// so that a command that kills processes by name does not kill them with it.
const (
	watchdogName = "exec-watchdog"
	gateName     = "exec-gate"
)

// HelperNames are the names for which RunHelper runs a helper. A test binary that stands
// in for the program runs the program under these names too.
var HelperNames = []string{watchdogName, gateName}
