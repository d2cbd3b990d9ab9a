package top

import (
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/internal/listing"
)

// around is how many lines a frame has besides those of locks and of warnings: the summary, the head and the foot.
const around = 3

// The styles of text. bubbletea leaves out colours where the terminal has none, or NO_COLOR is set.
var (
	bold     = ansi.NewStyle().Bold()
	faint    = ansi.NewStyle().Faint()
	reversed = ansi.NewStyle().Reverse(true)
	cyan     = ansi.NewStyle().ForegroundColor(ansi.Cyan)
	yellow   = ansi.NewStyle().ForegroundColor(ansi.Yellow)
	red      = ansi.NewStyle().ForegroundColor(ansi.Red)
)

// A layout has the widths of the columns.
type layout struct{ key, region, holder, bar int }

// Widths of columns that are always the same.
const (
	timeWidth = 9
	fixed     = 2*(timeWidth+1) + 1
)

// layoutOf divides the width of a terminal. In a narrow one, columns are left out: first the bar,
// then the region.
func layoutOf(width int) layout {
	var l layout
	if width >= 100 {
		l.bar = 16
	}
	if width >= 70 {
		l.region = 12
	}
	rest := max(width-fixed-l.bar-l.region-3, 10)
	l.key = rest / 2
	l.holder = rest - l.key
	return l
}

// View draws the screen.
func (m *model) View() tea.View {
	view := tea.NewView(strings.Join(m.frame(), "\n"))
	view.AltScreen = true
	return view
}

// frame returns the lines of the screen. In one that is too low, the last ones are left out but for the
// foot, which has the questions.
func (m *model) frame() []string {
	lines := append([]string{m.head()}, m.warnings()...)
	switch {
	case m.helping:
		lines = append(lines, m.scrolled(strings.Split(m.help.FullHelpView([][]key.Binding{m.bindings(inTable)}), "\n"))...)
	case m.detail != nil:
		alone, _ := m.alone()
		lines = append(lines, m.scrolled(alone)...)
	default:
		lines = append(lines, m.lines()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(m.height-1, 0)], m.foot())
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "")
	}
	return lines
}

// lines returns the lines of the table that are visible.
func (m *model) lines() []string {
	l := layoutOf(m.width)
	lines := []string{l.titles(m.order)}
	for _, g := range m.shown[m.top:min(m.top+m.page(), len(m.shown))] {
		g.Lock = m.aged(g.Lock)
		line := l.line(g, m.waits.Of(g.Lock))
		switch {
		case lockOf(g) == m.selected:
			line = reversed.Styled(ansi.Strip(line))
		case g.Expired() || m.stale() != "":
			line = faint.Styled(ansi.Strip(line))
		}
		lines = append(lines, line)
	}
	if len(m.shown) == 0 && m.search != "" {
		lines = append(lines, "no lock fits the search, Esc ends it")
	}
	return lines
}

// scrolled returns those of lines that are visible between head and foot.
func (m *model) scrolled(lines []string) []string {
	m.view.SetWidth(m.width)
	m.view.SetHeight(m.page() + 1) // the head of the table is not there
	m.view.SetContentLines(lines)
	return strings.Split(m.view.View(), "\n")
}

// head returns the first line.
func (m *model) head() string {
	line := bold.Styled("sqllock top") + "  " + m.at.Format(time.TimeOnly)
	if m.paused {
		line += "  " + yellow.Styled("paused")
	}
	if counts := summary(m.reading); m.stale() != "" {
		line += "  " + faint.Styled(counts)
	} else {
		line += "  " + counts
	}
	if m.search != "" {
		line += fmt.Sprintf("  search %q: %d", m.search, len(m.shown))
	}
	if m.unexpired {
		line += "  expired hidden"
	}
	return line
}

// warnings returns the lines below the head: why what is shown is old, what is said before a lock is unlocked, and a
// message for which the foot is too short. There is at least one line, so that the table does not move for a short one.
func (m *model) warnings() (lines []string) {
	warn := func(text string, style ansi.Style) {
		for line := range strings.SplitSeq(ansi.Wrap(text, max(m.width, 1), ""), "\n") {
			lines = append(lines, style.Styled(line))
		}
	}
	if why := m.stale(); why != "" {
		warn("The table cannot be read. This is what it contained "+format.Duration(max(m.now.Sub(m.at), 0))+" ago. "+why, red)
	}
	if m.mode == confirming {
		why := ", held by " + format.Printable(m.asked.Holder) + ": if it is alive, two processes will work at once"
		switch {
		case m.asked.Released():
			why = ": it is free"
		case m.asked.Kept():
			why = ": its holder " + format.Printable(m.asked.Holder) + " has finished, and its minimum hold ends"
		}
		warn("unlock "+m.askedName+why, red)
	}
	if m.isLong(m.message) {
		warn(m.message, nil)
	}
	if lines == nil {
		lines = []string{""}
	}
	return lines
}

func (m *model) isLong(line string) bool { return ansi.StringWidth(line) > m.width }

// foot returns the last line.
func (m *model) foot() string {
	switch {
	case m.mode == searching:
		return "search: " + m.input + "▏"
	case m.mode == confirming:
		return "unlock? Type yes: " + m.input + "▏"
	case m.message != "" && !m.isLong(m.message):
		return m.message
	default:
		return m.help.ShortHelpView(m.bindings(m.place()))
	}
}

// newHelp returns what draws help, in the terminal's own colour.
func newHelp() help.Model {
	h, plain, faint := help.New(), lipgloss.NewStyle(), lipgloss.NewStyle().Faint(true)
	h.Styles = help.Styles{ShortKey: plain, ShortDesc: faint, ShortSeparator: faint, Ellipsis: faint, FullKey: plain, FullDesc: faint}
	h.ShortSeparator = "  "
	return h
}

// bindings returns the keys of a place.
func (m *model) bindings(p place) (bindings []key.Binding) {
	for _, a := range m.actions() {
		if a.where&p != 0 {
			bindings = append(bindings, a.Binding)
		}
	}
	return bindings
}

// titles returns the heads of the columns.
func (l layout) titles(by listing.Order) string {
	title := func(name, column string) string {
		if by.Column() != column {
			return name
		}
		if by.Descending() {
			return name + "↓"
		}
		return name + "↑"
	}
	cells := []string{pad(title("KEY", "key"), l.key)}
	if l.region > 0 {
		cells = append(cells, pad(title("REGION", "region"), l.region))
	}
	cells = append(cells, pad(title("HOLDER", "holder"), l.holder), pad(title("AGE", "age"), timeWidth), pad(title("LEFT", "left"), timeWidth))
	return bold.Styled(strings.Join(cells, " "))
}

// line returns the line of a lock.
func (l layout) line(lock listing.Group, waiters []sqllock.Waiter) string {
	count, others := "", ""
	if lock.Kind != "" {
		count = " " + lock.Count()
	}
	if callers, longest := listing.Total(waiters); callers > 0 {
		count += fmt.Sprintf(", %d wait %s", callers, format.Duration(longest))
	}
	if n := lock.Others(); n > 0 {
		others = fmt.Sprintf(", +%d", n)
	}
	cells := []string{padBefore(lock.Name(), count, l.key)}
	if l.region > 0 {
		cells = append(cells, pad(format.Printable(lock.Region), l.region))
	}
	remaining := lock.State()
	if !lock.Expired() {
		remaining = format.Duration(lock.Left)
	}
	cells = append(cells, padBefore(lock.HeldBy(), others, l.holder), pad(format.Duration(lock.HeldFor()), timeWidth), pad(remaining, timeWidth))
	if l.bar > 0 {
		cells = append(cells, bar(lock.Lock, l.bar))
	}
	return strings.Join(cells, " ")
}

// bar draws the time left as a part of the time-to-live.
func bar(lock listing.Lock, width int) string {
	full := 0
	if lock.Full > 0 {
		full = min(max(int(float64(width)*float64(lock.Left)/float64(lock.Full)+0.5), 0), width)
	}
	colour := cyan
	switch {
	case lock.Overdue():
		colour = red
	case lock.Left < lock.Full/3:
		colour = yellow
	}
	return colour.Styled(strings.Repeat("━", full)) + faint.Styled(strings.Repeat("─", width-full))
}

// padBefore is pad of two texts. The first one is cut off before the second one.
func padBefore(s, end string, width int) string {
	return pad(ansi.Truncate(s, max(width-ansi.StringWidth(end), width/2), "…")+end, width)
}

// pad makes text exactly as wide as a column.
func pad(s string, width int) string {
	s = ansi.Truncate(s, width, "…")
	return s + strings.Repeat(" ", max(width-ansi.StringWidth(s), 0))
}
