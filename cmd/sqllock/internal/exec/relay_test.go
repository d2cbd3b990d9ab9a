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
	for want, holder := range map[string]string{
		"sqllock: still waiting for \"k\" after 30s\n":                                                               "",
		"sqllock: still waiting for \"k\" after 30s, held by web-1:7-0a3f9c52e11\n":                                  "web-1:7-0a3f9c52e11",
		"sqllock: still waiting for \"k\" after 30s: web-1:7-ka3f9c52e11 has finished, and its minimum hold lasts\n": "web-1:7-ka3f9c52e11",
	} {
		var stderr strings.Builder
		x := &execution{stderr: &stderr}
		if x.printWait(t.Context(), observe.Wait{Key: "k", Holder: holder, Waited: 30 * time.Second}); stderr.String() != want {
			t.Errorf("%q, want %q", &stderr, want)
		}
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
