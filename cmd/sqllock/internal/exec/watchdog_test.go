//go:build unix

package exec

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
)

// startInside starts an exec whose command is a shell script, and waits until the script has written "inside".
func startInside(t *testing.T, script string, flags ...string) *program.Program {
	t.Helper()
	db := dbtest.SQLite(t)
	migrated(t, db)
	p := program.Start(t, db.DSN, slices.Concat([]string{"exec", "--ttl", "1h"}, flags, []string{"nightly", "--", "sh", "-c", script})...)
	p.Stdout.Await("inside")
	return p
}

// TestExecKilledEndsFamily kills an exec. The command and all processes that it has started end.
func TestExecKilledEndsFamily(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	for name, script := range map[string]string{
		"in the foreground":         "echo inside; sleep 1000; true",
		"in the background":         "sleep 1000 & echo inside; wait",
		"in a pipe":                 "{ echo inside; sleep 1000; } | cat; true",
		"in a group of its own":     "in-group sh -c 'echo inside; sleep 1000; true'; true",
		"under another lock":        "sqllock exec --ttl 1h other -- sh -c 'echo inside; sleep 1000; true'; true",
		"ignoring signals":          "trap '' TERM INT HUP; echo inside; sleep 1000; true",
		"orphaned by its own shell": "(sleep 1000 &); echo inside; sleep 1000; true",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startInside(t, script)
			p.Signal(syscall.SIGKILL)
			p.Stdout.Rest() // it ends when all processes of the command have ended
		})
	}
}

// TestExecStandsStill stops an exec, or a lead, alone, so that nothing renews its lease. Its command is ended when
// the lease ends: it gets SIGTERM, and SIGKILL after the grace period. Then exec is continued. It waits until the
// lease has ended.
func TestExecStandsStill(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	for _, subcommand := range []string{"exec", "lead"} {
		t.Run(subcommand, func(t *testing.T) {
			t.Parallel()
			db := dbtest.SQLite(t)
			migrated(t, db)
			asked := filepath.Join(t.TempDir(), "asked")
			program.WithTTL(t, 3*time.Second, func(ttl time.Duration) (longEnough bool) {
				p := program.Start(t, db.DSN, subcommand, "--ttl", ttl.String(), "--grace", "100ms", "nightly", "--",
					"sh", "-c", `trap 'echo > "$0"' TERM; echo inside; echo $$; while :; do sleep 1000 & wait; done`, asked)
				if !p.Stdout.Find("inside") {
					return false
				}
				command := p.Stdout.Number()
				p.Signal(syscall.SIGSTOP)
				eventually(t, "the command has ended", func() bool { return ended(t, command) })
				_, err := os.Stat(asked)
				p.Signal(syscall.SIGCONT)
				p.Stderr.Await(`the lock "nightly" `)
				p.Signal(syscall.SIGKILL) // lead may have begun the next term, whose command ignores SIGTERM
				_ = p.Cmd.Wait()
				return err == nil // else exec was stopped when it was about to end the command itself
			})
		})
	}
}

// ended reports whether a process has ended, although its parent may not have waited for it.
func ended(t *testing.T, pid int) bool {
	t.Helper()
	return !slices.ContainsFunc(processes(t), func(p process.Process) bool { return p.PID == pid && !p.Zombie })
}

// TestExecLosesItsFamily removes the row of an exec whose command has a descendant in another process group. That
// gets SIGTERM when the command has ended, and SIGKILL after the grace period, as if exec had been killed. It takes a
// second, because a renewal notices the loss.
func TestExecLosesItsFamily(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	for grace, script := range map[string]string{
		"1h":    "in-group sh -c 'echo inside; exec sleep 1000'; true",
		"100ms": `in-group sh -c 'trap "" TERM; echo inside; sleep 1000; true'; true`,
	} {
		t.Run("grace "+grace, func(t *testing.T) {
			t.Parallel()
			db := dbtest.SQLite(t)
			migrated(t, db)
			program.WithTTL(t, 3*time.Second, func(ttl time.Duration) (longEnough bool) {
				p := program.Start(t, db.DSN, "exec", "--ttl", ttl.String(), "--grace", grace, "nightly", "--", "sh", "-c", script)
				if !p.Stdout.Find("inside") {
					return false
				}
				db.DB.MustExecContext(t.Context(), "DELETE FROM INT_LOCK")
				p.Stdout.Rest() // ends when all processes of the command have ended
				p.WantCode(exit.LockLost)
				return true
			})
		})
	}
}

// children returns the processes that a process has started.
func children(t *testing.T, parent int) (pids []int) {
	t.Helper()
	for _, p := range processes(t) {
		if p.Parent == parent && !p.Zombie {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// eventually waits until is returns true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(program.Limit); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("not within %v: %s", program.Limit, what)
		}
	}
}

// watchdogOf returns the watchdog of a program that runs the command given. The watchdog was started before the
// command.
func watchdogOf(t *testing.T, p *program.Program, command int) int {
	t.Helper()
	others := slices.DeleteFunc(children(t, p.Cmd.Process.Pid), func(pid int) bool { return pid == command })
	check.Equal(t, "children of exec besides its command", len(others), 1)
	return others[0]
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// TestWatchdogKilled kills the watchdog, and then exec. Another watchdog has replaced the first. It starts several
// processes, which takes seconds.
func TestWatchdogKilled(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	p := startInside(t, "echo inside; echo $$; sleep 1000; true", "-v")
	check.Must(t, syscall.Kill(watchdogOf(t, p, p.Stdout.Number()), syscall.SIGKILL))
	p.Stderr.Await("another has replaced it") // it is ready
	p.Signal(syscall.SIGKILL)
	p.Stdout.Rest()
}

// TestWatchdogEndsWithExec checks that an exec that ends by itself ends its watchdog, and does not kill the command's
// processes in the background.
func TestWatchdogEndsWithExec(t *testing.T) {
	t.Parallel()
	p := startInside(t, "sleep 1000 >/dev/null 2>&1 & echo inside; echo $$ $!; read wait; exit 3")
	p.Stdout.Lines.Scan()
	command, daemon, _ := strings.Cut(p.Stdout.Lines.Text(), " ")
	pid := check.Value(strconv.Atoi(command))(t)
	background := check.Value(strconv.Atoi(daemon))(t)
	t.Cleanup(func() { _ = syscall.Kill(background, syscall.SIGKILL) })
	watchdog := watchdogOf(t, p, pid)
	p.Stdin.Close()
	p.WantCode(3)
	check.Equal(t, "output", p.Stdout.Rest()+p.Stderr.Rest(), "")
	if !gone(watchdog) {
		t.Error("the watchdog is still running")
	}
	if gone(background) {
		t.Error("the process in the background was killed")
	}
}

// TestWatchdogIgnoresSignals sends the watchdog the signals that supervisors send to all processes of a service.
func TestWatchdogIgnoresSignals(t *testing.T) {
	t.Parallel()
	p := startInside(t, "trap '' TERM; echo inside; echo $$; sleep 1000; true")
	watchdog := watchdogOf(t, p, p.Stdout.Number())
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP} {
		check.Is(t, syscall.Kill(watchdog, s), nil)
	}
	p.Signal(syscall.SIGKILL)
	p.Stdout.Rest()
}

// TestWatchdogWaitsForItsOwnProcesses has a process that ignores signals as the watchdog does start another one: this one, since
// all tests of a process share its signals.
func TestWatchdogWaitsForItsOwnProcesses(t *testing.T) {
	t.Parallel()
	const variable = "SQLLOCK_TEST_IGNORES_SIGNALS"
	if os.Getenv(variable) != "" {
		ignoreSignals()
		check.Must(t, exec.CommandContext(t.Context(), "true").Run())
		return
	}
	again := exec.CommandContext(t.Context(), check.Value(os.Executable())(t), "-test.run=^"+t.Name()+"$") //nolint:gosec // this test
	again.Env = append(os.Environ(), variable+"=yes")
	if output, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

// TestCommandHasNoOtherFiles checks that the command does not get the pipe to the watchdog: with it, the watchdog
// would not notice the end of exec.
//
//nolint:paralleltest // a child gets a file that another test's SQLite is just opening
func TestCommandHasNoOtherFiles(t *testing.T) {
	p := startInside(t, "echo inside; ls /dev/fd")
	got := strings.Fields(p.Stdout.Rest())
	// This process may pass on files of its parent.
	want := check.Value(exec.CommandContext(t.Context(), "sh", "-c", "echo inside; ls /dev/fd").Output())(t)
	if diff := cmp.Diff(strings.Fields(string(want))[1:], got); diff != "" {
		t.Errorf("the command has other files: %s", diff)
	}
	p.WantCode(0)
}
