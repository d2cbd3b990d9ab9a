package durations

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Long is the duration beyond which a test's comment must say why it takes so long.
const Long = 2 * time.Second

// least is the number of tests in the list, if there are so many.
const least = 25

// A group is the runs of one test, in several cells of a matrix or with -count.
type group struct{ pkg, name string }

// A duration is the longest run of a group.
type duration struct {
	group
	longest string // the full name of the slowest test
	time    time.Duration
	times   int
}

// groupOf takes tests together whose names differ in the middle: TestContract/CELL/PART/TEST.
func groupOf(e event) group {
	parts := strings.Split(e.Test, "/")
	if last := len(parts) - 1; last >= 3 {
		return group{e.Package, parts[0] + "/…/" + parts[last-1] + "/" + parts[last]}
	}
	return group{e.Package, e.Test}
}

// count counts a test without subtests. The time of one with subtests can contain theirs.
func (p *Printer) count(e event) {
	g := groupOf(e)
	d := p.slowest[g]
	if d == nil {
		d = &duration{group: g}
		p.slowest[g] = d
	}
	d.times++
	if took := time.Duration(e.Elapsed * float64(time.Second)); took >= d.time {
		d.time, d.longest = took, e.Test
	}
}

// List returns the slowest tests that the printers have read, one in a line, the slowest first:
// all that take longer than [Long], with a mark, and 25 at least. Times are of the machine's
// clock, and without the time for which a parallel test waits for its turn.
func List(printers ...*Printer) string {
	var all []*duration
	for _, p := range printers {
		all = slices.AppendSeq(all, maps.Values(p.slowest))
	}
	slices.SortFunc(all, func(a, b *duration) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
	})
	var list strings.Builder
	for i, d := range all {
		if i >= least && d.time <= Long {
			break
		}
		mark := " "
		if d.time > Long {
			mark = "!"
		}
		fmt.Fprintf(&list, "%8.2f s %s %s %s", d.time.Seconds(), mark, d.pkg, d.name)
		if d.times > 1 {
			fmt.Fprintf(&list, " (the slowest of %d: %s)", d.times, d.longest)
		}
		list.WriteString("\n")
	}
	return list.String()
}

// Failed returns the failed tests that the printers have read, in the order of their ends, each
// as its package and its name. Tests with subtests are not among them. A package that has
// failed without a failed test, because it hangs or does not compile, is there alone.
func Failed(printers ...*Printer) []string {
	var all []string
	for _, p := range printers {
		all = append(all, p.failed...)
	}
	return all
}
