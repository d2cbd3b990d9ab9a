package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/internal/listing"
)

// around is how many lines a frame has beside those of locks: the summary, the head and the foot.
const around = 4

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

// frame returns the lines of the screen.
func (m *model) frame(width, height int, now time.Time) []string {
	m.page = max(height-around, 1)
	m.scroll()
	l := layoutOf(width)
	lines := []string{m.head(), m.warning(), l.titles(m.order)}
	for i := m.top; i < min(m.top+m.page, len(m.shown)); i++ {
		lock := m.aged(m.shown[i], now)
		line := l.line(lock)
		switch {
		case rowOf(lock) == m.selected:
			line = text.ReverseVideo.Sprint(text.StripEscape(line))
		case lock.Expired():
			line = text.Faint.Sprint(text.StripEscape(line))
		}
		lines = append(lines, line)
	}
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	return append(lines[:max(height-1, 3)], m.foot())
}

// head returns the first line.
func (m *model) head() string {
	line := text.Bold.Sprint("sqllock top") + "  " + m.at.Format("15:04:05") + "  " + summary(m.reading)
	if m.search != "" {
		line += fmt.Sprintf("  search %q: %d", m.search, len(m.shown))
	}
	if m.unexpired {
		line += "  expired rows hidden"
	}
	if m.paused {
		line += "  " + text.FgYellow.Sprint("paused")
	}
	return line
}

// warning returns the second line, which says what unlocking does before it is done.
func (m *model) warning() string {
	if m.mode != confirming {
		return ""
	}
	return text.FgRed.Sprint("unlock " + m.askedName + ", held by " + format.Printable(m.asked.Holder) + ": if it is alive, two processes will work at once")
}

// foot returns the last line.
func (m *model) foot() string {
	switch {
	case m.mode == searching:
		return "search: " + m.input + "▏"
	case m.mode == confirming:
		return "unlock? Type yes: " + m.input + "▏"
	case m.err != nil:
		return text.FgRed.Sprint(format.Printable(m.err.Error()))
	case m.message != "":
		return m.message
	default:
		return text.Faint.Sprint("↑↓ select   k a r h l sort   e expired   / search   space pause   u unlock   q quit")
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
	return text.Bold.Sprint(strings.Join(cells, " "))
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
	colour := text.FgCyan
	if lock.Left < lock.Full/3 {
		colour = text.FgYellow
	}
	return colour.Sprint(strings.Repeat("━", full)) + text.Faint.Sprint(strings.Repeat("─", width-full))
}

// pad makes text exactly as wide as a column.
func pad(s string, width int) string {
	if text.StringWidthWithoutEscSequences(s) > width {
		s = text.Trim(s, width-1) + "…"
	}
	return text.Pad(s, width, ' ')
}
