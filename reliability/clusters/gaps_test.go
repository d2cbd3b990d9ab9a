//go:build linux

package clusters

import (
	"time"

	"github.com/sqllock/sqllock/reliability/clusters/history"
)

// A gap is a time in which no lock was acquired by anybody.
type gap struct{ from, to int64 }

func (g gap) length() time.Duration { return time.Duration(g.to - g.from) }

// gapsBetween returns the times between two acquisitions, in their order.
func gapsBetween(events []history.Event) (all []gap) {
	last := int64(0)
	for _, e := range events { // in the order of their ends
		if e.Op != history.Acquire || e.Lease == "" {
			continue
		}
		if last > 0 {
			all = append(all, gap{last, e.To})
		}
		last = e.To
	}
	return all
}

// gaps returns the longest gap that touches each kind of fault, from its begin until its repair was
// done.
func gaps(events []history.Event) map[string]time.Duration {
	longest := make(map[string]time.Duration)
	between := gapsBetween(events)
	for _, e := range events {
		if e.Op != history.Fault {
			continue
		}
		for _, g := range between {
			if g.to > e.From && g.from < e.To {
				longest[e.ID] = max(longest[e.ID], g.length())
			}
		}
	}
	return longest
}

// longestGap returns the longest gap of all faults, and the name of the fault.
func longestGap(events []history.Event) (longest time.Duration, in string) {
	for name, length := range gaps(events) {
		if length > longest {
			longest, in = length, name
		}
	}
	return longest, in
}
