//go:build unix

package process

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestIdentity looks at this process, and at one that has ended, before and after its parent has waited for it.
func TestIdentity(t *testing.T) {
	t.Parallel()
	check.Equal(t, "this process lives", check.Value(Identify(os.Getpid()))(t).Lives(), true)
	cmd := exec.CommandContext(t.Context(), "cat")
	stdin := check.Value(cmd.StdinPipe())(t)
	check.Must(t, cmd.Start())
	id := check.Value(Identify(cmd.Process.Pid))(t)
	stdin.Close()
	for id.Lives() { // or the test times out
		time.Sleep(time.Millisecond)
	}
	check.Is(t, check.ErrorOf(Identify(id.PID)), ErrEnded)
	check.Must(t, cmd.Wait())
	check.Equal(t, "it lives", id.Lives(), false)
}

// TestWhatCannotBeSeenLives has the system not say whether a process has ended.
func TestWhatCannotBeSeenLives(t *testing.T) {
	t.Parallel()
	id := Identity{PID: 4711, Started: "7"}
	check.Equal(t, "it lives", id.isBy("7", nil), true)
	check.Equal(t, "another of its number is it", id.isBy("8", nil), false)
	check.Equal(t, "one that has ended lives", id.isBy("", ErrEnded), false)
	check.Equal(t, "one that cannot be looked for lives", id.isBy("", &os.PathError{Op: "open", Path: "/proc/4711/stat", Err: syscall.EMFILE}), true)
	check.Equal(t, "one that another user has lives", id.isBy("", &os.PathError{Op: "open", Path: "/proc/4711/stat", Err: syscall.EPERM}), false)
}
