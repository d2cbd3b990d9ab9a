package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// killTTL is how long the lock of a process that was killed stays taken.
const killTTL = 2 * time.Second

// TestKillOfExec kills `sqllock exec` with SIGKILL, on every database: its command
// dies with it, and the next gets the lock when the time-to-live has passed.
func TestKillOfExec(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		if err := migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		first := execute(t, db, "echo $$; exec sleep 600")
		pid, err := strconv.Atoi(<-first.out)
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = first.Wait()
		second := execute(t, db, "echo in")
		if line := <-second.out; line != "in" {
			t.Fatalf("%q", line)
		}
		if after := time.Since(began); after < killTTL {
			t.Errorf("in after %v", after)
		}
		if err := second.Wait(); err != nil {
			t.Error(err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) && !zombie(pid) {
			t.Errorf("the command of the dead is alive: %v", err)
		}
	})
}

// zombie tells whether a process has ended but nobody has asked how.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// TestASignalForExecReachesTheCommand and ends the wait of one that has none.
func TestASignalForExecReachesTheCommand(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	if err := migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil); err != nil {
		t.Fatal(err)
	}
	holder := execute(t, db, `trap 'echo bye; exit 5' TERM; echo in; while :; do sleep 0.05; done`)
	if line := <-holder.out; line != "in" {
		t.Fatalf("%q", line)
	}
	waiter := execute(t, db, "echo never", "--verbose")
	if line := <-waiter.err; !strings.Contains(line, "waiting") {
		t.Fatalf("%q", line)
	}
	signalled(t, waiter, 128+int(syscall.SIGTERM))
	signalled(t, holder, 5)
	if line := <-holder.out; line != "bye" {
		t.Fatalf("%q", line)
	}
	var rows int
	if err := db.DB.GetContext(t.Context(), &rows, "SELECT COUNT(*) FROM INT_LOCK"); err != nil || rows != 0 {
		t.Fatalf("%d rows, %v", rows, err)
	}
}

func signalled(t *testing.T, x *executed, want int) {
	t.Helper()
	if err := x.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := x.Wait(); !errors.As(err, &exit) || exit.ExitCode() != want {
		t.Fatalf("%v, want code %d", err, want)
	}
}

// An executed is a running `sqllock exec`, with what it prints, line by line.
type executed struct {
	*exec.Cmd
	out, err chan string
}

// execute runs a shell script under the lock "nightly". The program is the one that
// the scripts use, too.
func execute(t *testing.T, db *dbtest.DB, script string, flags ...string) *executed {
	t.Helper()
	args := append(append([]string{"exec", "--ttl", killTTL.String()}, flags...), "nightly", "--", "sh", "-c", script)
	x := &executed{exec.CommandContext(t.Context(), "sqllock", args...), make(chan string, 10), make(chan string, 10)}
	x.Env = append(os.Environ(), dsnVariable+"="+db.DSN, "XDG_STATE_HOME="+t.TempDir(), "GORACE=atexit_sleep_ms=0")
	stdout, err := x.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := x.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Start(); err != nil {
		t.Fatal(err)
	}
	go read(stdout, x.out)
	go read(stderr, x.err)
	return x
}

// read passes lines on until there are no more.
func read(from io.Reader, to chan<- string) {
	defer close(to)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		to <- lines.Text()
	}
}
