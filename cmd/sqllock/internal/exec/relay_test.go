//go:build unix

package exec

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/observe"
)

// TestASignalBeforeTheCommand ends the campaign when the lease has just been acquired. Nothing would forward that
// signal to a command.
func TestASignalBeforeTheCommand(t *testing.T) {
	t.Parallel()
	registry := check.Value(sqllock.NewRegistry(migrated(t, dbtest.SQLite(t)), &sqllock.RegistryOptions{TTL: time.Hour, NoRenew: true}))(t)
	lease := check.Value(registry.Lock(t.Context(), "web"))(t)
	var stdout, stderr strings.Builder
	x := &execution{wanted: wanted{key: "web"}, command: []string{"echo", "inside"}, stdout: &stdout, stderr: &stderr}
	check.Must(t, x.resolve())
	ctx, interrupt := context.WithCancelCause(t.Context())
	c := &campaign{execution: x, relay: relay{interrupt: interrupt}}
	c.relay.deliver(syscall.SIGTERM)
	if err := errors.Join(c.term(ctx, lease), lease.Unlock(t.Context())); err != nil || stdout.String()+stderr.String() != "" {
		t.Errorf("%v, stdout %q, stderr %q", err, &stdout, &stderr)
	}
}

// TestALongWaitIsPrinted does not call a process that has finished the holder.
func TestALongWaitIsPrinted(t *testing.T) {
	t.Parallel()
	for want, wait := range map[string]observe.Wait{
		"":                              {},
		", held by web-1:7-0a3f9c52e11": {Holder: "web-1:7-0a3f9c52e11"},
		": web-1:7-ka3f9c52e11 has finished, and its minimum hold lasts": {Holder: "web-1:7-ka3f9c52e11"},
		": web-1:7-ka3f9c52e11 has finished: its row is locked":          {Holder: "web-1:7-ka3f9c52e11", Err: errors.New("its row is locked")},
	} {
		var stderr strings.Builder
		x := &execution{stderr: &stderr}
		wait.Key, wait.Waited = "k", 30*time.Second
		x.printWait(t.Context(), wait)
		x.printer.flush()
		check.Equal(t, "it prints", stderr.String(), "sqllock: still waiting for \"k\" after 30s"+want+"\n")
	}
}

// TestWhatAWaitIsFor does not call a process the holder whose lease is over, or that has finished.
func TestWhatAWaitIsFor(t *testing.T) {
	t.Parallel()
	for want, held := range map[string]sqllock.HeldError{
		"the lock": {Key: "k"},
		`"k", held by web-1:7-0a3f9c52e11, whose lease ends in 5s unless it is renewed`:                            {Key: "k", Holder: "web-1:7-0a3f9c52e11", Left: 5 * time.Second},
		`"k", which stays taken for another 5s: web-1:7-ka3f9c52e11 has finished, and its minimum hold lasts`:      {Key: "k", Holder: "web-1:7-ka3f9c52e11", Left: 5 * time.Second},
		`"k", which was held by web-1:7-ka3f9c52e11: its lease is over, and a transaction may have its row locked`: {Key: "k", Holder: "web-1:7-ka3f9c52e11"},
	} {
		check.Equal(t, "it waits for", holderText(&held), want)
	}
}

// TestNoCommandBeginsWhileASignalEndsTheCampaign looks at the mutex that redirect waits for: a command that begins
// finds either the signal in its channel, or the campaign over.
func TestNoCommandBeginsWhileASignalEndsTheCampaign(t *testing.T) {
	t.Parallel()
	var r relay
	called := false
	r.interrupt = func(error) {
		called = true
		if r.mu.TryLock() {
			r.mu.Unlock()
			t.Error("redirect could return before the campaign has ended")
		}
	}
	r.deliver(syscall.SIGHUP)
	if !called {
		t.Error("the signal has not ended the campaign")
	}
}
