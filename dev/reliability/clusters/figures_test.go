//go:build linux

package clusters

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/dev/reliability/clusters/checker"
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	figures "github.com/sqllock/sqllock/dev/reliability/internal/page"
)

// summary says in a few lines what a trial has shown.
func (b *trial) summary(r *checker.Report) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %d faults in %v, %d workers killed, %d stopped, %d acquired (%v), %d of them over pools of Open, %d guarded and %d unguarded writes acknowledged\n",
		b.name, b.faults, b.took.Round(time.Second), b.workers.Killed, b.workers.Stopped, r.Acquisitions, r.Kinds, b.opened(), r.Guarded, r.Unguarded)
	for _, f := range faultsIn(b.events) {
		fmt.Fprintf(&s, "%s, %d times: longest gap %s\n", f.name, f.times, inSeconds(f.gap))
	}
	for _, g := range gapsBetween(b.events) {
		if length := time.Duration(g.to - g.from); length > remarkable {
			fmt.Fprintf(&s, "%s without an acquisition, in which calls answered:\n%s", inSeconds(length), b.answersIn(g))
		}
	}
	return s.String()
}

// remarkable is the length of a gap whose reason is worth a look.
const remarkable = 10 * time.Second

// changing are the parts of an error that differ between calls: keys, addresses, holders, times.
var changing = regexp.MustCompile(`"[^"]*"|\d[\w.:]*|\s+`)

// answersIn returns the errors of the acquisitions that failed in a gap, the most frequent first.
func (b *trial) answersIn(g gap) string {
	times := make(map[string]int)
	for _, e := range b.events {
		if e.Op == history.Acquire && e.Err != "" && e.To > g.from && e.To < g.to {
			pools := map[bool]string{false: "their own", true: "Open"}[b.config.IsOpened(e.ID)]
			times[pools+": "+changing.ReplaceAllString(e.Err, " ")]++
		}
	}
	answers := slices.SortedFunc(maps.Keys(times), func(a, b string) int {
		return cmp.Or(cmp.Compare(times[b], times[a]), strings.Compare(a, b))
	})
	var s strings.Builder
	for _, answer := range answers[:min(len(answers), 8)] {
		fmt.Fprintf(&s, "%5d over pools of %.300s\n", times[answer], answer)
	}
	return s.String()
}

// opened counts the acquisitions of processes whose pools are those of Open.
func (b *trial) opened() (n int) {
	for _, e := range b.events {
		if e.Op == history.Acquire && e.Lease != "" && b.config.IsOpened(e.Lease) {
			n++
		}
	}
	return n
}

// publish writes a trial that has broken no promise to the page.
func (b *trial) publish(r *checker.Report) error {
	if *page == "" || b.t.Failed() {
		return nil
	}
	faults := faultsIn(b.events)
	var longest fault
	for _, f := range faults {
		if f.gap > longest.gap {
			longest = f
		}
		if err := figures.PutRow(*page, "faults", 2, b.name, f.name, f.times, inSeconds(f.gap)); err != nil {
			return err
		}
	}
	return figures.PutRow(*page, "campaign", 1, b.name, b.took.Round(time.Second), b.faults, fmt.Sprintf("%d, %d", b.workers.Killed, b.workers.Stopped),
		r.Acquisitions, b.opened(), r.Guarded, fmt.Sprintf("%s (%s)", inSeconds(longest.gap), longest.name))
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// A fault is what a trial has shown of one kind of fault.
type fault struct {
	name  string
	times int
	// gap is the longest time in which no lock was acquired by anybody, and that touches the
	// time from the begin of the fault until its repair was done.
	gap time.Duration
}

// faultsIn returns the kinds of faults in a history, in the order of their names.
func faultsIn(events []history.Event) []fault {
	found := make(map[string]*fault)
	between := gapsBetween(events)
	for _, e := range events {
		if e.Op != history.Fault {
			continue
		}
		f := found[e.ID]
		if f == nil {
			f = &fault{name: e.ID}
			found[e.ID] = f
		}
		f.times++
		for _, g := range between {
			if g.to > e.From && g.from < e.To {
				f.gap = max(f.gap, time.Duration(g.to-g.from))
			}
		}
	}
	var all []fault
	for _, f := range found {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b fault) int { return strings.Compare(a.name, b.name) })
	return all
}

// A gap is a time in which no lock was acquired by anybody.
type gap struct{ from, to int64 }

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
