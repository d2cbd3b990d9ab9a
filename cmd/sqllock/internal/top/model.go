package top

import (
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/internal/listing"
)

// A mode says what keys are for.
type mode int

const (
	choosing   mode = iota // a lock
	searching              // the keys are a search
	confirming             // the keys are the word yes
)

// A row is what identifies a line from one reading to the next.
type row struct{ region, lockKey, holder string }

func rowOf(l listing.Lock) row { return row{l.Region, l.LockKey, l.Row.Holder} }

// A model is what is shown, and what the user has chosen.
type model struct {
	reading
	bars      listing.Bars
	shown     []listing.Lock // those that fit, sorted
	order     listing.Order
	search    string
	unexpired bool // expired rows are hidden
	selected  row
	top       int // the first line that is visible
	page      int // how many lines are visible

	mode      mode
	input     string      // of the mode
	asked     sqllock.Row // that is to be removed
	askedName string      // its key, safe to show
	message   string
	paused    bool
}

// An action is what the program has to do after a key.
type action int

const (
	nothing action = iota
	quit
	remove // the row that was asked for
)

// update shows another reading. After an error the last one stays.
func (m *model) update(now reading) {
	if now.err != nil {
		m.err = now.err
		return
	}
	m.reading = now
	m.bars.Fill(m.locks)
	m.arrange()
}

// arrange chooses and sorts the locks that are shown, and keeps the selected one visible.
func (m *model) arrange() {
	m.shown = m.shown[:0]
	for _, l := range m.locks {
		if l.Matches(m.search) && (!m.unexpired || !l.Expired()) {
			m.shown = append(m.shown, l)
		}
	}
	listing.Sort(m.shown, m.order)
	m.scroll()
}

// position returns the line of the selected lock. If it is gone, another one is selected.
func (m *model) position() int {
	i := slices.IndexFunc(m.shown, func(l listing.Lock) bool { return rowOf(l) == m.selected })
	if i < 0 && len(m.shown) > 0 {
		i = min(m.top, len(m.shown)-1)
		m.selected = rowOf(m.shown[i])
	}
	return i
}

// scroll makes the selected line visible.
func (m *model) scroll() {
	i, page := m.position(), max(m.page, 1)
	m.top = min(max(m.top, i-page+1), max(i, 0))
	m.top = max(min(m.top, len(m.shown)-page), 0)
}

// move selects another line.
func (m *model) move(by int) {
	if i := m.position(); i >= 0 {
		m.selected = rowOf(m.shown[min(max(i+by, 0), len(m.shown)-1)])
	}
	m.scroll()
}

// press does what a key is for.
func (m *model) press(k key) action {
	if k == ctrlC {
		return quit
	}
	switch m.mode {
	case searching:
		m.enterText(k, func() { m.mode = choosing }, func() { m.mode, m.input = choosing, "" })
		m.search = m.input
		m.arrange()
	case confirming:
		confirmed := false
		m.enterText(k, func() { m.mode, confirmed = choosing, m.input == "yes" }, func() { m.mode = choosing })
		switch {
		case confirmed:
			m.message = "removing…"
			return remove
		case m.mode == choosing:
			m.message = "nothing was removed"
		}
	default:
		return m.choose(k)
	}
	return nothing
}

// enterText adds a key to the input, or calls done or cancelled.
func (m *model) enterText(k key, done, cancelled func()) {
	switch {
	case k == enter:
		done()
	case k == escape:
		cancelled()
	case k == backspace:
		letters := []rune(m.input)
		m.input = string(letters[:max(len(letters)-1, 0)])
	case k.isText():
		m.input += string(k)
	}
}

// choose does what a key is for while no text is typed.
func (m *model) choose(k key) action {
	m.message = ""
	switch k {
	case "q", escape:
		return quit
	case up:
		m.move(-1)
	case down:
		m.move(1)
	case pageUp:
		m.move(-max(m.page, 1))
	case pageDown:
		m.move(max(m.page, 1))
	case home:
		m.move(-len(m.shown))
	case end:
		m.move(len(m.shown))
	case "k", "a", "r", "h", "l":
		m.sortBy(map[key]string{"k": "key", "a": "age", "r": "region", "h": "holder", "l": "left"}[k])
	case "e":
		m.unexpired = !m.unexpired
		m.arrange()
	case "/":
		m.mode, m.input = searching, m.search
	case " ":
		m.paused = !m.paused
	case "u", deleteKey:
		m.ask()
	case ctrlC, enter, backspace: // ctrlC is not for choosing alone
	}
	return nothing
}

// sortBy sorts by a column, the other way if that is the order already.
func (m *model) sortBy(column string) {
	first := listing.Order(column)
	if column == "age" {
		first = listing.Oldest
	}
	switch {
	case m.order != first:
	case first.Descending():
		first = listing.Order(column)
	default:
		first = "-" + first
	}
	m.order = first
	m.arrange()
}

// ask asks whether the selected row is to be removed.
func (m *model) ask() {
	if i := m.position(); i >= 0 {
		m.mode, m.input, m.asked, m.askedName = confirming, "", m.shown[i].Row, m.shown[i].Name()
	}
}

// removed tells what became of the removal of a row.
func (m *model) removed(r sqllock.Row, deleted bool, err error) {
	switch {
	case err != nil:
		m.message = "not removed: " + format.Printable(err.Error())
	case deleted:
		m.message = "removed " + m.askedName + ", held by " + format.Printable(r.Holder)
	default:
		m.message = "not removed: " + m.askedName + " was released or acquired by another holder"
	}
}

// aged returns a lock as it is now, some time after it was read.
func (m *model) aged(l listing.Lock, now time.Time) listing.Lock {
	passed := max(now.Sub(m.at), 0)
	l.Age += passed
	l.Left -= passed
	return l
}
