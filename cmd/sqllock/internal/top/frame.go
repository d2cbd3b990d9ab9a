package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/internal/listing"
)

// around is how many lines a frame has beside those of locks: the summary, the head and the foot.
const around = 4

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
	l := layoutOf(m.width)
	lines := []string{m.head(), m.warning(), l.titles(m.order)}
	for _, lock := range m.shown[m.top:min(m.top+m.page(), len(m.shown))] {
		lock = m.aged(lock)
		line := l.line(lock)
		switch {
		case rowOf(lock) == m.selected:
			line = reversed.Styled(ansi.Strip(line))
		case lock.Expired():
			line = faint.Styled(ansi.Strip(line))
		}
		lines = append(lines, line)
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

// head returns the first line.
func (m *model) head() string {
	line := bold.Styled("sqllock top") + "  " + m.at.Format("15:04:05") + "  " + summary(m.reading)
	if m.search != "" {
		line += fmt.Sprintf("  search %q: %d", m.search, len(m.shown))
	}
	if m.unexpired {
		line += "  expired rows hidden"
	}
	if m.paused {
		line += "  " + yellow.Styled("paused")
	}
	return line
}

// warning returns the second line, which says what unlocking does before it is done.
func (m *model) warning() string {
	if m.mode != confirming {
		return ""
	}
	return red.Styled("unlock " + m.askedName + ", held by " + format.Printable(m.asked.Holder) + ": if it is alive, two processes will work at once")
}

// foot returns the last line.
func (m *model) foot() string {
	switch {
	case m.mode == searching:
		return "search: " + m.input + "▏"
	case m.mode == confirming:
		return "unlock? Type yes: " + m.input + "▏"
	case m.err != nil:
		return red.Styled(format.Printable(m.err.Error()))
	case m.message != "":
		return m.message
	default:
		return faint.Styled("↑↓ select   k a r h l sort   e expired   / search   space pause   u unlock   q quit")
	}
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
func (l layout) line(lock listing.Lock) string {
	cells := []string{pad(lock.Name(), l.key)}
	if l.region > 0 {
		cells = append(cells, pad(format.Printable(lock.Region), l.region))
	}
	remaining := "expired"
	if !lock.Expired() {
		remaining = format.Duration(lock.Left)
	}
	cells = append(cells, pad(format.Printable(lock.Row.Holder), l.holder), pad(format.Duration(lock.Age), timeWidth), pad(remaining, timeWidth))
	if l.bar > 0 {
		cells = append(cells, bar(lock, l.bar))
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
	if lock.Left < lock.Full/3 {
		colour = yellow
	}
	return colour.Styled(strings.Repeat("━", full)) + faint.Styled(strings.Repeat("─", width-full))
}

// pad makes text exactly as wide as a column.
func pad(s string, width int) string {
	s = ansi.Truncate(s, width, "…")
	return s + strings.Repeat(" ", max(width-ansi.StringWidth(s), 0))
}
