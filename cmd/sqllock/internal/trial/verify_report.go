package trial

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/engine"
)

// A verdict says whether a promise was kept, and what shows it.
type verdict struct {
	kept bool
	text string
}

// report prints a line for each promise. It returns an error without text if one was not kept.
func (v *verification) report() error {
	var text strings.Builder
	broken := false
	fmt.Fprintf(&text, "%s\n\n", v.server)
	for _, line := range []struct {
		promise string
		verdict
	}{
		{"exclusion", v.exclusion()}, {"expiry", v.expired()}, {"tokens", v.tokens()}, {"guard", v.guard}, {"clocks", v.clocks()},
	} {
		mark := "✓"
		if !line.kept {
			mark, broken = "✗", true
		}
		fmt.Fprintf(&text, "%s %-10s %s\n", mark, line.promise, line.text)
	}
	if v.failures > 0 {
		fmt.Fprintf(&text, "\ncalls that failed: %d, the last one with: %s\n", v.failures, v.lastError)
	}
	if broken {
		text.WriteString("\nThis database, as it is set up, does not keep what locks need.\n")
	}
	if _, err := fmt.Fprint(v.out, text.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if broken {
		return &exit.Error{Code: exit.Failure}
	}
	return nil
}

func (v *verification) exclusion() verdict {
	lost := len(v.entries) - v.counter
	return verdict{v.overlaps == 0 && lost == 0, fmt.Sprintf(
		"%d processes have had the lock %d times: overlaps %d, lost updates %d", v.options.workers, len(v.entries), v.overlaps, lost)}
}

// expired judges the first entry after the kill.
func (v *verification) expired() verdict {
	var after []event
	for _, e := range v.entries {
		if e.At.After(v.killedAt) {
			after = append(after, e)
		}
	}
	left := v.expiry.Sub(v.killedAt)
	if len(after) == 0 {
		return verdict{false, fmt.Sprintf("the lock of a killed process was not acquired again; its lease had %s left", seconds(left))}
	}
	takeover := slices.MinFunc(after, func(a, b event) int { return a.At.Compare(b.At) }).At
	return verdict{!takeover.Before(v.expiry.Add(-clockPrecision)), fmt.Sprintf(
		"the lock of a killed process was acquired %s after the kill; its lease had %s left", seconds(takeover.Sub(v.killedAt)), seconds(left))}
}

// tokens judges the fencing tokens in the order in which the lock was had.
func (v *verification) tokens() verdict {
	inOrder := slices.SortedFunc(slices.Values(v.entries), func(a, b event) int { return a.At.Compare(b.At) })
	for i, e := range inOrder[min(1, len(inOrder)):] {
		if last := inOrder[i].Token; e.Token <= last {
			return verdict{false, fmt.Sprintf("%d was drawn after %d", e.Token, last)}
		}
	}
	return verdict{len(inOrder) > 0, fmt.Sprintf("%d tokens, each above the one before", len(inOrder))}
}

// guardVerdict judges a guarded transaction: done is how it ended, early and late are what the next holder has reported
// before the order to commit and at last.
func guardVerdict(done, early, late event) verdict {
	switch {
	case late.Kind != taken:
		return verdict{false, "the next process could not acquire the lock: " + late.Err}
	case done.Kind == committed && !late.Written:
		return verdict{false, "a transaction was committed although another process had the lock already"}
	case done.Kind == committed && early.Kind == taken:
		return verdict{false, "the next process has read what was not committed yet"}
	case done.Kind == committed:
		return verdict{true, "a transaction that lasted longer than its lease kept the next process out until its COMMIT"}
	case late.Written:
		return verdict{false, "a transaction was refused, and is there: " + done.Err}
	default:
		return verdict{true, "a transaction that lasted longer than its lease was refused: " + done.Err}
	}
}

// clocks judges by how much the clocks of the databases differ, and how far each has run from this host's.
func (v *verification) clocks() verdict {
	limit := engine.Margin(v.ttl)
	var apart, drift time.Duration
	for _, n := range v.nodes {
		from, to := n.clock[0], n.clock[1]
		first := v.nodes[0].clock[0]
		apart, drift = max(apart, from.Apart(first), to.Apart(v.nodes[0].clock[1])), max(drift, to.Apart(from))
	}
	return verdict{apart <= limit && drift <= limit, fmt.Sprintf("at most %s apart, and %s from this host's pace", apart.Round(time.Millisecond), drift.Round(time.Millisecond))}
}
