package demo

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// writeIntroduction explains the demo to a new user: where the lock is, and the page that shows it, if
// there is one.
func writeIntroduction(o *options, place, page string) error {
	text := fmt.Sprintf("%d processes repeatedly add 1 to the number in a file. ", o.workers)
	if o.withoutLock {
		text += "No lock keeps them from working at the same time."
	} else {
		text += fmt.Sprintf("A process works only while it holds a lock, a row in %s. One of them will be killed while it holds the lock.", place)
	}
	if page != "" {
		text += "\nWatch the lock at " + page
	}
	_, err := fmt.Fprintf(o.out, "%s\n\n", text)
	return err
}

// clockPrecision is how much the clocks of SQLite, which counts milliseconds, and of this
// process can seem to differ.
const clockPrecision = 5 * time.Millisecond

// A result is a line of the summary. One that checks a promise has a fault, the name of what must not be.
type result struct {
	name, value string
	fault       string
	broken      bool
}

func (r *record) results() []result {
	o := r.options
	results := []result{
		{"rounds", fmt.Sprintf("%d%s", len(r.rounds), o.ofRounds()), "missing rounds", o.duration == 0 && len(r.rounds) < o.rounds},
		{"overlaps", fmt.Sprint(r.overlaps()), "overlaps", r.overlaps() > 0},
		{"lost updates", fmt.Sprintf("%d   (the file contains %d)", r.lost(), r.counter), "lost updates", r.lost() != 0},
	}
	if o.withoutLock {
		return results
	}
	median, longest := r.waits()
	return append(results,
		result{name: "hand-offs between processes", value: fmt.Sprint(r.handoffs())},
		result{name: "waiting for the lock", value: fmt.Sprintf("median %s, longest %s", seconds(median), seconds(longest))},
		result{
			"takeover after the kill", fmt.Sprintf("%s   (lease left: %s of %v)", seconds(r.takeover.Sub(r.kill)), seconds(r.expiry.Sub(r.kill)), o.ttl),
			"a takeover before the lease had expired", r.takeover.Before(r.expiry.Add(-clockPrecision)),
		})
}

// faults returns the names of what must not be, and was.
func (r *record) faults() (faults []string) {
	for _, result := range r.results() {
		if result.broken {
			faults = append(faults, result.fault)
		}
	}
	return faults
}

// writeSummary prints the results as numbers, and then as a sentence.
func writeSummary(r *record) error {
	t := tabwriter.NewWriter(r.options.out, 0, 0, 1, ' ', 0)
	_, _ = fmt.Fprintln(t) // Flush returns the error
	for _, result := range r.results() {
		mark := ""
		switch {
		case result.broken:
			mark = "\t✗"
		case result.fault != "":
			mark = "\t✓"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s%s\n", result.name, result.value, mark)
	}
	_, _ = fmt.Fprintf(t, "\n%s\n", r.conclusion())
	return t.Flush()
}

// conclusion says what the demo has shown.
func (r *record) conclusion() string {
	faults := r.faults()
	switch {
	case r.options.withoutLock && len(faults) == 0:
		return "By chance, no update was lost this time: no lock kept the processes apart."
	case r.options.withoutLock:
		return fmt.Sprintf("Without a lock, the processes overlapped %d times, and %d of %d updates are lost, without any error. "+
			"Now run the same with a lock: sqllock demo", r.overlaps(), r.lost(), len(r.rounds))
	case len(faults) > 0:
		return "This must not happen: the lock did not keep its promise. Please report it: " + strings.Join(faults, ", ") + "."
	}
	return fmt.Sprintf("No two of the %d processes worked at the same time, so no update was lost. The lock of the killed process "+
		"was acquired by another one %s later, after its lease had expired.", r.options.workers, seconds(r.takeover.Sub(r.kill)))
}

// ofRounds returns the number of rounds as text, if it is fixed.
func (o *options) ofRounds() string {
	if o.duration != 0 {
		return ""
	}
	return fmt.Sprintf(" of %d", o.rounds)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
