//go:build unix

package trial

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestWorkerFailure checks the error for a worker that ends before it is told to.
func TestWorkerFailure(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]struct {
		code int
		text string
	}{
		"exit 69":       {exit.Database, "ended unexpectedly: exit status 69"},
		"kill -KILL $$": {exit.Failure, "ended unexpectedly: signal: killed"},
		"exit 0":        {exit.Failure, "ended unexpectedly: exit status 0"},
	} {
		events := make(chan event)
		//nolint:noctx // it ends by itself
		p, err := startWorker(2, exec.Command("sh", "-c", script), func(e event) { events <- e })
		check.Must(t, err)
		if e := <-events; e.Kind != ended || e.from != p {
			t.Errorf("%s: event %+v", script, e)
		}
		err = p.failure()
		if exit.CodeOf(err) != want.code || !strings.HasPrefix(err.Error(), "worker 2 (process ") || !strings.HasSuffix(err.Error(), want.text) {
			t.Errorf("%s: %v", script, err)
		}
	}
}
