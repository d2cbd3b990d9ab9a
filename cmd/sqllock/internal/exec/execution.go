package exec

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
)

// An execution is one run of exec, or of lead: a command under a lock.
type execution struct {
	wanted

	flags   *connect.Flags
	command []string
	program string // the file of the command

	clientID    string
	wait        time.Duration
	waitForever bool
	ttl         time.Duration
	minHold     time.Duration
	grace       time.Duration
	noRenew     bool
	conflict    int // the exit code if the lock was not acquired before the timeout
	verbose     bool

	renewed chan struct{} // receives after each renewal
	suspend func()        // stops this process, and returns when it has been continued

	stdin          io.Reader
	stdout, stderr io.Writer
	printing       sync.Mutex // several goroutines print messages
}

// printf prints a message for every user.
func (x *execution) printf(format string, args ...any) {
	x.printing.Lock()
	defer x.printing.Unlock()
	_, _ = fmt.Fprintf(x.stderr, "sqllock: "+format+"\n", args...)
}

// verbosef prints a message for users of --verbose.
func (x *execution) verbosef(format string, args ...any) {
	if x.verbose {
		x.printf(format, args...)
	}
}
