//go:build linux

package reliability

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
	"github.com/sqllock/sqllock/internal/test/check"
)

const (
	// contentionTTL is longer than any machine stands still.
	contentionTTL = 5 * time.Minute
	// contentionEnd is how long processes may compete: for what hangs.
	contentionEnd = 10 * time.Minute
)

// TestContention has processes compete for locks of all kinds with hardly a pause, until each process has had each kind, and
// judges what they did as on clusters. How long callers wait is measured by the benchmark.
func TestContention(t *testing.T) {
	inParallel(t)
	each(t, append(servers[1:3:3], sqlite), func(t *testing.T, _ int, c cell) {
		f := newFleet(t, c, c.newBase(t).dsn, 4, contentionTTL, false) // fair callers of single keys would keep joint locks out
		missing := []string{"all"}
		for limit := time.Now().Add(contentionEnd); len(missing) > 0 || f.Acquisitions() < size(500, 5000); pause(t.Context(), 100*time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("nobody has acquired: %q", missing)
			}
			missing = withoutATurn(check.Value(history.Read(f.config.History))(t), f.config.Processes)
		}
		f.end(f.config.Target)
	})
}

// withoutATurn returns the processes, each with a kind of lock that it has never acquired.
func withoutATurn(events []history.Event, processes int) (missing []string) {
	for process := range processes {
		for _, kind := range workload.Kinds {
			has := func(e history.Event) bool {
				return e.Op == history.Acquire && e.Kind == kind && strings.HasPrefix(e.Lease, fmt.Sprint(process, "."))
			}
			if !slices.ContainsFunc(events, has) {
				missing = append(missing, fmt.Sprintf("process %d: %s", process, kind))
			}
		}
	}
	return missing
}
