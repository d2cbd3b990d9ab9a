package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// writeSummary says in numbers, then in a sentence, what the demo has shown.
func writeSummary(w io.Writer, r *record) error {
	width, terminal := terminalWidth(w)
	t := table.NewWriter()
	t.SetStyle(summaryStyle(terminal))
	t.AppendRows(r.summary(terminal))
	t.SuppressTrailingSpaces()
	moral := r.moral()
	if terminal {
		moral = text.WrapSoft(moral, min(width, 100))
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s\n", t.Render(), moral)
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

func (r *record) summary(terminal bool) []table.Row {
	faults := r.faults()
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
	median, longest := r.waiting()
	rows := []table.Row{
		{"rounds", fmt.Sprintf("%d%s", r.done, r.of()), verdict(roundsMissing)},
		{"overlaps seen", r.overlaps(), verdict(overlapped)},
		{"updates lost", fmt.Sprintf("%d   (the file says %d)", r.lost(), r.counter), verdict(lostUpdates)},
	}
	if r.demo.withoutLock {
		return rows
	}
	return append(rows,
		table.Row{"hand-offs between processes", r.handoffs(), ""},
		table.Row{"waiting for the lock", fmt.Sprintf("median %s, longest %s", exactText(median), exactText(longest)), ""},
		table.Row{"take-over after the kill", fmt.Sprintf("%s   (lease left: %s of %v)",
			exactText(r.takeover.at.Sub(r.kill.at)), exactText(r.kill.lease.Sub(r.kill.at)), r.demo.ttl), verdict(tookOverEarly)})
}

// moral is what to remember.
func (r *record) moral() string {
	faults := r.faults()
	switch {
	case r.demo.withoutLock && len(faults) == 0:
		return "Nothing was lost this time, by luck: nothing kept the processes apart."
	case r.demo.withoutLock:
		return fmt.Sprintf("Without a lock the processes got into each other's way %d times and %d of %d updates are gone, without a trace of an error. "+
			"Now watch the same with it: sqllock demo", r.overlaps(), r.lost(), r.done)
	case len(faults) > 0:
		return "This must not happen: the lock did not keep its promise. Please report it: " + r.accusation(faults)
	}
	return fmt.Sprintf("No two of the %d processes were ever in the file at once, so no update was lost; and the lock of the one that was killed "+
		"was taken over %s later, when its lease had ended, and not before.", r.demo.workers, exactText(r.takeover.at.Sub(r.kill.at)))
}

func (r *record) accusation(faults []fault) string {
	names := map[fault]string{
		overlapped: "overlaps", lostUpdates: "lost updates", tookOverEarly: "a take-over before the lease had ended", roundsMissing: "rounds not done",
	}
	var said []string
	for _, f := range faults {
		said = append(said, names[f])
	}
	return strings.Join(said, ", ") + "."
}
