//go:build linux

package reliability

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/dev/reliability/clusters/checker"
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
		target := workload.Target{Driver: c.driver, DSNs: []string{c.newBase(t).dsn}}
		must(t, workload.Prepare(t.Context(), target))
		config := workload.Config{
			Target: target, TTL: contentionTTL, Processes: 4, Goroutines: 4, Hasty: true, Seed: rand.Uint64(), History: t.TempDir(),
		}
		t.Logf("seed %d", config.Seed)
		workers := check.Value(workload.Start(config))(t)
		defer workers.Stop()
		missing := []string{"all"}
		for limit := time.Now().Add(contentionEnd); len(missing) > 0 || workers.Acquisitions() < size(500, 5000); pause(t.Context(), 100*time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("nobody has acquired: %q", missing)
			}
			events := check.Value(history.Read(config.History))(t)
			missing = withoutATurn(events, config.Processes)
		}
		workers.Stop()
		judge(t, config, target)
	})
}

// judge judges what the processes of a load did, and what they have written.
func judge(t *testing.T, config workload.Config, final workload.Target) *checker.Report {
	t.Helper()
	events := check.Value(history.Read(config.History))(t)
	rows := check.Value(workload.Rows(t.Context(), final))(t)
	report := checker.Check(events, rows)
	t.Logf("%d acquisitions: %v", report.Acquisitions, report.Kinds)
	if found := report.Violations(); len(found) > 0 || report.Guarded == 0 {
		t.Errorf("%d guarded writes, %d violations: %s", report.Guarded, len(found), strings.Join(found[:min(len(found), 10)], "; "))
	}
	return report
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
