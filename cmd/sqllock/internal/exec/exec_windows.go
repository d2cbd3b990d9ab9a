package exec

import (
	"io"
	"os"
	"os/exec"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// There are no watchdogs: Windows has no process groups to kill. So there are no gates, which wait for them.

func watchdogCommand() (*exec.Cmd, error) { return nil, nil }

func isWatchdog() bool { return false }

func runWatchdog(*os.File, io.Writer) {}

// now is not needed where there are no watchdogs.
func now() instant { return 0 }

type gate struct{}

func newGate(*exec.Cmd) (*gate, error) { return nil, nil }

func (*gate) started() {}

func (*gate) named(err error) error { return err }

func (*gate) open() error { return nil }

func (*gate) abandon() {}

func isGate() bool { return false }

func runGate() {}

// end ends a command whose lease is lost: Windows can only kill it.
func (x *execution) end(c *process.Child) {
	c.Kill()
	<-c.Ended
}
