//go:build linux

package reliability

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/child"
)

var contention = flag.Duration("contention", 0, "how long processes compete, for the figures of docs/more.md (default: a second, without figures)")

// TestContention has processes compete for joint locks, for a semaphore and for a read-write lock,
// without a pause. A witness that knows nothing of the locks sees who holds what at a time. Each
// process must get its turn.
func TestContention(t *testing.T) {
	inParallel(t)
	totals := newTable(t, "contention", "processes compete for", "database, driver", "processes", "acquisitions", "violations",
		"wait: p99", "longest", "acquisitions of a process: least", "mean")
	byKind := newTable(t, "contention waits", "processes compete for", "who waits", "database, driver", "acquisitions",
		"wait: median", "p99", "longest")
	totals.file, byKind.file = "more.md", "more.md"
	cells := append(servers[1:3:3], sqlite)
	processes, lasts := 4, time.Second
	if *contention > 0 {
		cells, processes, lasts = cells[:2], 8, *contention
	}
	each(t, cells, func(t *testing.T, place int, c cell) {
		for i, competed := range competitions {
			t.Run(competed.name, func(t *testing.T) {
				inParallel(t)
				result := c.newBase(t).compete(t, competed, processes, lasts)
				if *contention == 0 {
					t.Log(result)
					return
				}
				row := len(cells)*i + place
				result.total(totals, row, competed, c.name)
				for k, kind := range competed.kinds {
					result.ofKind(byKind, 100*i+10*k+place, competed.name, kind, c.name)
				}
			})
		}
	})
}

// contest is how long the calls of each process have waited, and what the witness complains of.
type contest struct {
	processes  []waits
	violations []string
}

// compete runs processes that compete for a while.
func (b *base) compete(t *testing.T, competed competition, processes int, lasts time.Duration) contest {
	t.Helper()
	do := task{Role: "contender", Kind: b.name, DSN: b.dsn, TTL: contentionTTL, Dir: t.TempDir(), Competition: competed.name, Lasts: lasts}
	children := make([]*child.Process, processes)
	for i := range children {
		do.Number = i
		children[i] = startChild(t, do)
	}
	for _, c := range children {
		c.Want("working")
	}
	for _, c := range children {
		c.Tell("go")
	}
	pause(t.Context(), lasts)
	var result contest
	for i, c := range children {
		c.Want("done")
		do.Number = i
		text, err := os.ReadFile(do.waitsPath())
		must(t, err)
		own := make(waits)
		must(t, json.Unmarshal(text, &own))
		if own.calls() == 0 {
			t.Errorf("process %d has acquired nothing", i)
		}
		result.processes = append(result.processes, own)
	}
	var err error
	result.violations, err = do.witness().violations()
	must(t, err)
	if n := len(result.violations); n > 0 {
		t.Errorf("%d violations: %s", n, strings.Join(result.violations[:min(n, 10)], "; "))
	}
	return result
}

// calls is how many calls have acquired something.
func (w waits) calls() (n int) {
	for _, some := range w {
		n += len(some)
	}
	return n
}

// of returns how long the calls of some kinds have waited, in any process, the shortest first.
func (c contest) of(kinds []string) (all []time.Duration) {
	for _, own := range c.processes {
		for _, kind := range kinds {
			all = append(all, own[kind]...)
		}
	}
	slices.Sort(all)
	return all
}

// String returns the number of acquisitions of each process.
func (c contest) String() string {
	calls := make([]int, len(c.processes))
	for i, own := range c.processes {
		calls[i] = own.calls()
	}
	return fmt.Sprintf("%d acquisitions", calls)
}

// total adds the row of all calls.
func (c contest) total(figures *table, place int, competed competition, cell string) {
	all, least := 0, c.processes[0].calls()
	for _, own := range c.processes {
		all, least = all+own.calls(), min(least, own.calls())
	}
	_, p99, longest := tail(c.of(competed.kinds))
	figures.add(place, competed.name, cell, len(c.processes), all, len(c.violations), p99, longest, least, all/len(c.processes))
}

// ofKind adds the row of one kind of call.
func (c contest) ofKind(figures *table, place int, competition, kind, cell string) {
	all := c.of([]string{kind})
	median, p99, longest := tail(all)
	figures.add(place, competition, kind, cell, len(all), median, p99, longest)
}

// tail returns the median, the 99th percentile and the maximum of durations, which are sorted.
func tail(sorted []time.Duration) (median, p99, longest string) {
	if len(sorted) == 0 {
		return "-", "-", "-"
	}
	show := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	last := len(sorted) - 1
	return show(sorted[last/2]), show(sorted[last*99/100]), show(sorted[last])
}
