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
)

// TestASignalBeforeTheCommand ends the campaign when the lease has just been acquired. Nothing
// would forward that signal to a command.
func TestASignalBeforeTheCommand(t *testing.T) {
	t.Parallel()
	registry := check.Value(sqllock.NewRegistry(migrated(t, dbtest.SQLite(t)), &sqllock.RegistryOptions{TTL: time.Hour}))(t)
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

// TestNoCommandBeginsWhileASignalEndsTheCampaign looks at the mutex that redirect waits for: a
// command that begins finds either the signal in its channel, or the campaign over.
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
