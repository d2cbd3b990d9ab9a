//go:build unix

package exec

import (
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestWatchdogOnASlowMachine stops a family on a machine that stands still for a minute before each look. A process
// that is not stopped by then starts another one, in a group of its own. All of them are found.
func TestWatchdogOnASlowMachine(t *testing.T) {
	t.Parallel()
	machine := []process.Process{{PID: 1, Group: 1}, {PID: 2, Parent: 1, Group: 2}}
	synctest.Test(t, func(t *testing.T) {
		family := stopFamily([]int{1}, 1, func() ([]process.Process, error) {
			time.Sleep(time.Minute)
			for _, p := range machine {
				if next := len(machine) + 1; !p.Stopped && next <= 10 {
					machine = append(machine, process.Process{PID: next, Parent: p.PID, Group: next})
				}
			}
			return slices.Clone(machine), nil
		}, func(pid int) error {
			machine[pid-1].Stopped = true
			return nil
		})
		check.Same(t, "the family is", family, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	})
}

// TestWatchdogBesideProcessesThatItCannotStop stops a family that has another new member at each look, which cannot
// be stopped, like a process of another user. The watchdog gives up.
func TestWatchdogBesideProcessesThatItCannotStop(t *testing.T) {
	t.Parallel()
	const root = 1
	looked := 0
	synctest.Test(t, func(t *testing.T) {
		family := stopFamily([]int{root}, 0, func() ([]process.Process, error) {
			looked++
			return []process.Process{{PID: root, Stopped: true}, {PID: root + looked, Parent: root}}, nil
		}, func(pid int) error {
			if pid == root {
				return nil
			}
			return syscall.EPERM
		})
		if !slices.Equal(family, []int{root}) || looked != looks {
			t.Errorf("the family is %v after %d looks, want only %d after %d", family, looked, root, looks)
		}
	})
}
