package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
)

// writeSummary prints the results as numbers, and then as a sentence.
func writeSummary(w io.Writer, t *timeline) error {
	width, terminal := format.TerminalWidth(w)
	rows := table.NewWriter()
	rows.SetStyle(summaryStyle(terminal))
	rows.AppendRows(t.summary(terminal))
	rows.SuppressTrailingSpaces()
	conclusion := t.conclusion()
	if terminal {
		conclusion = text.WrapSoft(conclusion, min(width, 100))
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s\n", rows.Render(), conclusion)
	return err
}

func summaryStyle(terminal bool) table.Style {
	style := table.StyleRounded
	if !terminal {
		style.Options = table.OptionsNoBordersAndSeparators
		style.Box.PaddingLeft = ""
	}
	return style
}

func (t *timeline) summary(terminal bool) []table.Row {
	faults := t.faults()
	verdict := func(f fault) string {
		mark, colour := "✓", text.FgGreen
		if slices.Contains(faults, f) {
			mark, colour = "✗", text.FgRed
		}
		if terminal {
			return colour.Sprint(mark)
		}
		return mark
	}
	median, longest := t.waitTimes()
	rows := []table.Row{
		{"rounds", fmt.Sprintf("%d%s", t.done, t.ofRounds()), verdict(roundsMissing)},
		{"overlaps", t.overlaps(), verdict(overlapped)},
		{"lost updates", fmt.Sprintf("%d   (the file contains %d)", t.lost(), t.counter), verdict(lostUpdates)},
	}
	if t.options.withoutLock {
		return rows
	}
	return append(rows,
		table.Row{"hand-offs between processes", t.handoffs(), ""},
		table.Row{"waiting for the lock", fmt.Sprintf("median %s, longest %s", exactSeconds(median), exactSeconds(longest)), ""},
		table.Row{"takeover after the kill", fmt.Sprintf("%s   (lease left: %s of %v)",
			exactSeconds(t.takeover.at.Sub(t.kill.at)), exactSeconds(t.kill.expiry.Sub(t.kill.at)), t.options.ttl), verdict(tookOverEarly)})
}

// conclusion says what the demo has shown.
func (t *timeline) conclusion() string {
	faults := t.faults()
	switch {
	case t.options.withoutLock && len(faults) == 0:
		return "By chance, no update was lost this time: no lock kept the processes apart."
	case t.options.withoutLock:
		return fmt.Sprintf("Without a lock, the processes overlapped %d times, and %d of %d updates are lost, without any error. "+
			"Now run the same with a lock: sqllock demo", t.overlaps(), t.lost(), t.done)
	case len(faults) > 0:
		return "This must not happen: the lock did not keep its promise. Please report it: " + faultText(faults)
	}
	return fmt.Sprintf("No two of the %d processes worked at the same time, so no update was lost. The lock of the killed process "+
		"was acquired by another one %s later, after its lease had expired.", t.options.workers, exactSeconds(t.takeover.at.Sub(t.kill.at)))
}

func faultText(faults []fault) string {
	names := map[fault]string{
		overlapped: "overlaps", lostUpdates: "lost updates", tookOverEarly: "a takeover before the lease had expired", roundsMissing: "missing rounds",
	}
	var found []string
	for _, f := range faults {
		found = append(found, names[f])
	}
	return strings.Join(found, ", ") + "."
}
