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
		// real time: the limit has to pass; program.WithTTL tries a longer lease where the machine was too slow
		time.Sleep(time.Until(limit))
		input.Close()
		code := exit.CodeOf(<-result)
		if !renewed || code == exit.LockLost {
			x.printer.flush()
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
	standing, stands, ended := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	lease := &steppedLease{context: t.Context(), end: time.Now().Add(time.Hour), onRead: func(int) {
		select {
		case <-standing:
			select {
			case stands <- struct{}{}:
			default:
			}
			<-ended
		default:
		}
	}}
	cmd := script(t, "trap 'exit 9' TERM; echo inside; while :; do sleep 1000 & wait; done")
	cmd.Stdout = write
	c, keeper, err := x.startWatched(lease, cmd, check.Value(startWatchdog())(t), false)
	check.Must(t, err)
	stdout.Find("inside")
	// The watchdog is ready now. While one is not, limits without end would fill its pipe, since this lease's context does not end.
	// real time: the watchdog acts then, however late that is
	lease.extend(time.Now().Add(time.Second))
	for range 3 { // with the third, the watchdog has been told of the first
		x.renewed <- struct{}{}
	}
	close(standing)
	<-stands // before: a read that has just begun would tell the watchdog of the renewal
	lease.extend(time.Now().Add(time.Hour))
	<-c.Ended
	close(ended)
	x.attend(t.Context(), c, keeper.lost(), nil)
	check.Equal(t, "the watchdog has acted", keeper.dismiss(), true)
	x.printer.flush()
	program.Contains(t, stderr.String(), `sqllock: the lock "nightly" is lost: this process stood still`)
}

// TestNoMinimumHoldOfALostLock has the watchdog end a command that ends with 0 then. With --until-success, the next process may
// run it at once.
func TestNoMinimumHoldOfALostLock(t *testing.T) {
	t.Parallel()
	repository := migrated(t, dbtest.SQLite(t))
	registry := check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: time.Hour}))(t)
	defer registry.Close(t.Context())
	lease := check.Value(registry.Lock(t.Context(), "nightly"))(t)
	x := &execution{wanted: wanted{key: "nightly"}, ttl: time.Hour, minHold: time.Hour, untilSuccess: true, stderr: io.Discard}
	c := check.Value(process.Start(script(t, "exit 0"), false, true))(t)
	<-c.Ended
	err := x.finish(&holding{registry: registry, lease: lease}, time.Now(), c, true)
	check.Equal(t, "exit code", exit.CodeOf(err), exit.LockLost)
	if row, ok, err := repository.Peek(t.Context(), "nightly"); err != nil || ok {
		t.Errorf("the row %+v is left, %v", row, err)
	}
}

// TestExecStandsStillWhileItComputesLimits has exec stand still between its look at the clock and at the lease. The
// limits would be early by that, so it looks again.
func TestExecStandsStillWhileItComputesLimits(t *testing.T) {
	t.Parallel()
	x := &execution{ttl: 10 * time.Second, stderr: io.Discard}
	// real time: nothing waits for it
	lease := &steppedLease{context: t.Context(), end: time.Now().Add(10 * time.Second), onRead: func(read int) {
		if read == 1 {
			// real time: a process that stands still
			time.Sleep(300 * time.Millisecond)
		}
	}}
	x.limitsOf(lease)
	if lease.reads == 1 {
		t.Error("the limits are 300 ms early")
	}
}

// TestALossIsToldOnce has a watchdog act and the lease end at once. The command is ended, and one message says so.
func TestALossIsToldOnce(t *testing.T) {
	t.Parallel()
	var stderr syncWriter
	x := &execution{wanted: wanted{key: "nightly"}, grace: time.Hour, stderr: &stderr}
	c := check.Value(process.Start(script(t, "exec sleep 1000"), false, true))(t)
	w := newWatchdog(nil, nil)
	close(w.acted)
	k := &keeper{x: x, child: c, acted: make(chan struct{})}
	k.noteActed(w)
	<-k.lost()
	ended, end := context.WithCancel(t.Context())
	end()
	x.attend(ended, c, nil, nil) // only the lease
	x.printer.flush()
	check.Equal(t, "messages", strings.Count(stderr.String(), "is lost: "), 1)
	program.Contains(t, stderr.String(), "this process stood still")
}
