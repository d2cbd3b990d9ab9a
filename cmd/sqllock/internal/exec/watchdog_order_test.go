//go:build unix

package exec

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
)

// A renewal and the limit at which a watchdog ends the command have one order. These tests stop exec or its
// watchdog at each step between the answer of the database and the watchdog's decision.

// A steppedLease is a lease whose deadline the test moves. onRead is called before each read of it.
type steppedLease struct {
	context context.Context
	onRead  func(read int)

	mu    sync.Mutex
	reads int
	end   time.Time
}

func (l *steppedLease) Context() context.Context { return l.context }

func (l *steppedLease) Deadline() time.Time {
	l.mu.Lock()
	l.reads++
	read := l.reads
	l.mu.Unlock()
	l.onRead(read)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

func (l *steppedLease) extend(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = end
}

// script returns the command that runs a script.
func script(t *testing.T, text string) *exec.Cmd {
	t.Helper()
	return &exec.Cmd{Path: check.Value(exec.LookPath("sh"))(t), Args: []string{"sh", "-c", text}}
}

// A syncWriter is what several goroutines write to.
type syncWriter struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *syncWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *syncWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// TestARenewalThatIsNotReported renews a lease without a report, as one does whose answer comes late. The command
// goes on after the limit that its watchdog was told last. The test waits until that has passed.
func TestARenewalThatIsNotReported(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	repository := migrated(t, dbtest.SQLite(t))
	program.WithTTL(t, time.Second, func(ttl time.Duration) (longEnough bool) {
		registry := check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true}))(t)
		lease := check.Value(registry.Lock(t.Context(), "nightly"))(t)
		defer registry.Close(t.Context())
		limit := lease.Deadline().Add(ttl / 10) // the row's end, which is later than the limit
		stdin, input, err := os.Pipe()
		check.Must(t, err)
		defer stdin.Close()
		output, stdout := program.NewStream(t)
		defer stdout.Close()
		var stderr syncWriter
		x := &execution{
			wanted: wanted{key: "nightly"}, command: []string{"sh", "-c", "echo inside; read wait; exit 7"},
			ttl: ttl, grace: time.Hour, stdin: stdin, stdout: stdout, stderr: &stderr,
		}
		check.Must(t, x.resolve())
		result := make(chan error, 1)
		go func() {
			result <- x.supervise(&holding{registry: registry, lease: lease}, make(chan os.Signal))
			stdout.Close()
		}()
		if !output.Lines.Scan() { // the machine was too slow for the lease
			check.Equal(t, "exit code", exit.CodeOf(<-result), exit.LockLost)
			return false
		}
		renewed := lease.RenewFor(t.Context(), time.Hour) == nil
		time.Sleep(time.Until(limit))
		input.Close()
		code := exit.CodeOf(<-result)
		if !renewed || code == exit.LockLost {
			program.Contains(t, stderr.String(), `the lock "nightly" is lost`)
			return false
		}
		check.Equal(t, "exit code", code, 7)
		return true
	})
}

// TestExecStandsStillAfterARenewal has exec stand still when it is about to tell its watchdog of a renewal. The
// watchdog ends the command at the last limit. exec says so, and the lock counts as lost.
func TestExecStandsStillAfterARenewal(t *testing.T) {
	t.Parallel()
	stdout, write := program.NewStream(t)
	defer write.Close()
	var stderr syncWriter
	x := &execution{wanted: wanted{key: "nightly"}, ttl: time.Second, grace: time.Hour, stderr: &stderr, renewed: make(chan struct{}, 1)}
	standing, ended := make(chan struct{}), make(chan struct{})
	lease := &steppedLease{context: t.Context(), end: time.Now().Add(time.Second), onRead: func(int) {
		select {
		case <-standing:
			<-ended
		default:
		}
	}}
	cmd := script(t, "trap 'exit 9' TERM; echo inside; while :; do sleep 1000 & wait; done")
	cmd.Stdout = write
	c, guard, err := x.startGuarded(lease, cmd, check.Value(startWatchdog())(t), false)
	check.Must(t, err)
	stdout.Find("inside") // or it has ended
	close(standing)
	lease.extend(time.Now().Add(time.Hour))
	x.renewed <- struct{}{}
	<-c.Ended
	close(ended)
	x.attend(t.Context(), c, guard.lost(), nil)
	check.Equal(t, "the watchdog has acted", guard.dismiss(), true)
	program.Contains(t, stderr.String(), `sqllock: the lock "nightly" is lost: this process stood still`)
}

// TestExecStandsStillWhileItComputesLimits has exec stand still between its look at the clock and at the lease. The
// limits would be early by that, so it looks again.
func TestExecStandsStillWhileItComputesLimits(t *testing.T) {
	t.Parallel()
	x := &execution{ttl: 10 * time.Second, stderr: io.Discard}
	lease := &steppedLease{context: t.Context(), end: time.Now().Add(10 * time.Second), onRead: func(read int) {
		if read == 1 {
			time.Sleep(300 * time.Millisecond)
		}
	}}
	x.limitsOf(lease)
	if lease.reads == 1 {
		t.Error("the limits are 300 ms early")
	}
}

// TestALossIsToldOnce has a watchdog act and the lease end at once, while stderr blocks. The
// command is ended, and one message says so.
func TestALossIsToldOnce(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	x := &execution{wanted: wanted{key: "nightly"}, grace: time.Hour, stderr: write}
	c := check.Value(process.Start(script(t, "exec sleep 1000"), false, true))(t)
	w := newWatchdog(nil, nil)
	close(w.acted)
	g := &guard{x: x, child: c, acted: make(chan struct{})}
	go func() {
		defer write.Close()
		g.noteActed(w)
	}()
	<-g.lost()
	ended, end := context.WithCancel(t.Context())
	end()
	x.attend(ended, c, nil, nil) // only the lease
	text := string(check.Value(io.ReadAll(read))(t))
	check.Equal(t, "messages", strings.Count(text, "is lost: "), 1)
	program.Contains(t, text, "this process stood still")
}
