package exec

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestWatchdogOnASlowMachine stops a family whose youngest is in a group of its own, on a machine that
// stands still for a minute before each look. All of it is found.
func TestWatchdogOnASlowMachine(t *testing.T) {
	command := exec.CommandContext(t.Context(), "sh", "-c", "setsid sh -c 'echo inside; sleep 1000; true'; true")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := command.StdoutPipe()
	check.Must(t, err)
	check.Must(t, command.Start())
	root := command.Process.Pid
	var family []int
	t.Cleanup(func() {
		for _, pid := range append(family, descendants(t, root)...) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	if _, err := stdout.Read(make([]byte, len("inside\n"))); err != nil {
		t.Fatal(err)
	}
	var youngest []int
	eventually(t, "a child has a child", func() bool {
		for _, child := range children(t, root) {
			youngest = children(t, child)
		}
		return len(youngest) == 1
	})
	synctest.Test(t, func(*testing.T) {
		family = stopFamily([]int{root}, root, func() ([]process.Process, error) {
			time.Sleep(time.Minute)
			return process.Table()
		})
	})
	if !slices.Contains(family, youngest[0]) {
		t.Errorf("the family is %v, want %d in it, too", family, youngest[0])
	}
}

func descendants(t *testing.T, pid int) (pids []int) {
	t.Helper()
	for _, child := range children(t, pid) {
		pids = append(append(pids, child), descendants(t, child)...)
	}
	return pids
}

// TestWatchdogBesideProcessesThatItCannotStop stops a family that has another new member at each look,
// which cannot be stopped, like a process of another user. The watchdog gives up.
func TestWatchdogBesideProcessesThatItCannotStop(t *testing.T) {
	command := exec.CommandContext(t.Context(), "sleep", "1000")
	check.Must(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	root := command.Process.Pid
	const none = 1 << 30 // no process has such a number
	var family []int
	looked := 0
	synctest.Test(t, func(*testing.T) {
		family = stopFamily([]int{root}, 0, func() ([]process.Process, error) {
			looked++
			return []process.Process{{PID: root, Stopped: true}, {PID: none + looked, Parent: root}}, nil
		})
	})
	if !slices.Equal(family, []int{root}) || looked != looks {
		t.Errorf("the family is %v after %d looks, want only %d after %d", family, looked, root, looks)
	}
}
