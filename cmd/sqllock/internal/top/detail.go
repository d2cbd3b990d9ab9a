package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/seatkey"
)

// A detail is the lock that is shown alone.
type detail struct {
	listing.Group      // as it was read last
	free          bool // no row of it was in the last reading
	chosen        int  // which of its rows
}

// open shows the selected lock alone.
func (m *model) open() {
	if i := m.position(); i >= 0 {
		m.detail = &detail{Group: m.shown[i]}
		m.refresh()
		m.view.GotoTop()
	}
}

// refresh finds the rows of the lock that is shown alone in the last reading. The search does not hide them.
func (m *model) refresh() {
	if m.detail == nil {
		return
	}
	last := *m.detail
	m.detail.free = true
	for _, g := range m.groups {
		if lockOf(g) == lockOf(last.Group) {
			m.detail.Group, m.detail.free = g, false
		}
	}
	chosen := last.Rows[last.chosen].LockKey
	m.detail.chosen = max(slices.IndexFunc(m.detail.Rows, func(l listing.Lock) bool { return l.LockKey == chosen }), 0)
}

// target returns the row that is to be unlocked. ok is false if it is not clear which one.
func (m *model) target() (l listing.Lock, ok bool) {
	if m.detail != nil {
		return m.detail.Rows[m.detail.chosen], !m.detail.free
	}
	i := m.position()
	if i < 0 {
		return l, false
	}
	if len(m.shown[i].Rows) > 1 {
		m.message = "Enter shows its rows: select one there"
		return l, false
	}
	return m.shown[i].Rows[0], true
}

// alone returns the lines of the lock that is shown alone, and the number of the one with the chosen row.
func (m *model) alone() (lines []string, chosen int) {
	d := m.detail
	for part := range strings.SplitSeq(ansi.Hardwrap(d.Name(), m.width, true), "\n") {
		lines = append(lines, bold.Styled(part))
	}
	lines = m.field(lines, "LOCK_KEY", format.Printable(d.LockKey))
	lines = m.field(lines, "region", format.Printable(d.Region))
	switch {
	case d.free && m.more:
		lines = m.field(lines, "state", "not among the rows that were read: see --limit")
	case d.free:
		lines = m.field(lines, "state", "free")
	case d.Kind != "":
		lines = m.field(lines, "held", d.Count())
	}
	lines = m.runFields(lines, d.Group)
	for _, w := range m.waits.Of(d.Lock) {
		lines = m.field(lines, "waited for", "by "+listing.WaitedBy(w)+": "+format.Waiters(w.Callers, w.Waited))
	}
	for i, l := range d.Rows {
		if d.free {
			break
		}
		lines = append(lines, "")
		if i == d.chosen {
			chosen = len(lines)
		}
		if d.Kind != "" {
			name := seatName(l)
			if i == d.chosen {
				name = reversed.Styled(name)
			}
			lines = append(lines, name)
		}
		lines = m.rowFields(lines, m.aged(l))
	}
	lines = append(lines, "", bold.Styled("SEEN SINCE "+clock(m.history.began, m.now)))
	for _, line := range m.history.lines(lockOf(d.Group), m.now) {
		lines = append(lines, strings.Split(ansi.Wrap(line, m.width, ""), "\n")...)
	}
	return lines, chosen
}

// runFields appends what is known of the runs of a job.
func (m *model) runFields(lines []string, g listing.Group) []string {
	for _, run := range m.runs {
		if run.LockKey != g.LockKey || run.Region != g.Region {
			continue
		}
		ago := func(d time.Duration) string { return format.Duration(d+max(m.now.Sub(m.runsAt), 0)) + " ago" }
		if last := run.Last; last != nil {
			lines = m.field(lines, "last run", last.Result()+", "+ago(last.Ended)+", took "+format.Duration(last.Took)+", by "+format.Printable(last.Process.String()))
			success := "never"
			if run.Succeeded != nil {
				success = ago(*run.Succeeded)
			}
			lines = m.field(lines, "success", success)
		}
		lines = m.field(lines, "runs", fmt.Sprintf("%d, %d failed, %d skipped", run.Runs, run.Failures, run.Skips))
	}
	return lines
}

// rowFields appends what is known of a row.
func (m *model) rowFields(lines []string, l listing.Lock) []string {
	if process := l.Process.String(); process != "" {
		lines = m.field(lines, "process", format.Printable(process))
	}
	lines = m.field(lines, "CLIENT_ID", format.Printable(l.Row.Holder))
	if l.Expired() {
		text := "acquired " + format.Duration(l.Age) + " ago"
		if !l.Released() { // otherwise it may have been given an end before its release
			text = format.Duration(-l.Left) + " ago, " + text
		}
		return m.field(lines, l.State(), text)
	}
	lines = m.field(lines, l.State()+" for", format.Duration(l.Age)+", "+format.Duration(l.Left)+" left")
	if ago, ok := l.Renewed(); ok {
		text := format.Duration(ago) + " ago, to last for " + format.Duration(l.TTL)
		if l.Overdue() {
			text += ": overdue"
		}
		lines = m.field(lines, "renewed", text)
	}
	return lines
}

// fieldWidth is that of the names of fields.
const fieldWidth = 11

// field appends the lines of a text with a name before it.
func (m *model) field(lines []string, name, text string) []string {
	name = faint.Styled(pad(name, fieldWidth))
	for part := range strings.SplitSeq(ansi.Wrap(text, max(m.width-fieldWidth, 1), ""), "\n") {
		lines = append(lines, name+part)
		name = strings.Repeat(" ", fieldWidth)
	}
	return lines
}

// seatName says which row of a semaphore or of a read-write lock it is.
func seatName(l listing.Lock) string {
	switch {
	case l.Seat.Kind == "":
		return "writer"
	case l.Seat.Number == seatkey.TurnNumber:
		return "waits in turn"
	default:
		return l.Seat.Kind + " " + l.Seat.Number
	}
}
