package top

import (
	"context"
	"slices"
	"time"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/seatkey"
)

// redrawEvery is how often the times on the screen move.
const redrawEvery = 200 * time.Millisecond

// A mode says what keys are for.
type mode int

const (
	choosing   mode = iota // a lock
	searching              // the keys are a search
	confirming             // the keys are the word yes
)

// A lockID is what identifies a line from one reading to the next.
type lockID struct {
	region, lockKey string
	semaphore       bool // which may have the key of another lock
}

func lockOf(g listing.Group) lockID { return lockID{g.Region, g.LockKey, g.Kind == seatkey.Permit} }

// A rowID identifies one acquisition.
type rowID struct{ region, lockKey, holder string }

func idOf(r sqllock.Row) rowID { return rowID{r.Region, r.LockKey, r.Holder} }

// A table is where locks are read and removed. Both end with the context.
type table interface {
	read(context.Context) reading
	remove(context.Context, sqllock.Row) (bool, error)
}

// A model is what is shown, and what the user has chosen.
type model struct {
	ctx      context.Context // ends with the program
	table    table
	interval time.Duration
	left     int // how many readings to show, or negative: no limit

	reading
	began     time.Time // when the reading under way began, or zero
	now       time.Time // up to which the times on the screen have moved
	width     int
	height    int
	bars      listing.Bars
	groups    []listing.Group // all that were read
	shown     []listing.Group // those that fit, sorted
	order     listing.Order
	search    string
	unexpired bool // expired rows are hidden
	selected  lockID
	top       int // the first line that is visible
	history   history
	detail    *detail // the lock that is shown alone, or nil
	helping   bool
	view      viewport.Model // of the help, or of the lock that is shown alone
	help      help.Model

	mode      mode
	input     string      // of the mode
	asked     sqllock.Row // that is to be removed
	askedName string      // its key, safe to show
	message   string
	paused    bool
	quitting  bool
}

// The messages of the program, besides readings and keys.
type (
	due     struct{} // the table is to be read
	redraw  struct{}
	removal struct { // what became of a row
		row     sqllock.Row
		deleted bool
		err     error
	}
)

// newModel returns a model that shows the first reading, and ends after count of them, or never if
// count is 0.
func newModel(ctx context.Context, t table, first reading, o options) *model {
	m := &model{ctx: ctx, table: t, interval: o.interval, left: o.count - 1, order: listing.Order(o.sort), now: first.at, view: viewport.New(), help: newHelp()}
	m.show(first)
	return m
}

// Init starts the two clocks: that of the table, and that of the screen.
func (m *model) Init() tea.Cmd {
	if m.left == 0 {
		return tea.Quit
	}
	return tea.Batch(m.after(m.pause(m.interval), due{}), m.after(redrawEvery, redraw{}))
}

// after delivers a message after some time, or when the program ends.
func (m *model) after(d time.Duration, message tea.Msg) tea.Cmd {
	return func() tea.Msg {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-m.ctx.Done():
		}
		return message
	}
}

// Update handles one message. The database is asked in the background, so that keys have their
// effect at once.
func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
		m.help.SetWidth(m.width)
		m.scroll()
	case tea.KeyPressMsg:
		return m, m.press(message)
	case tea.PasteMsg:
		m.paste(message.Content)
	case redraw:
		m.now = time.Now()
		m.scroll()
		return m, m.after(redrawEvery, redraw{})
	case due:
		if m.paused {
			return m, m.after(m.interval, due{})
		}
		m.began = time.Now()
		return m, func() tea.Msg { return m.table.read(m.ctx) }
	case reading:
		m.began = time.Time{}
		m.show(message)
		if m.left--; m.left == 0 {
			return m, tea.Quit
		}
		return m, m.after(message.pause(m.interval), due{})
	case removal:
		m.removed(message)
	}
	return m, nil
}

// show shows another reading. After an error the last one stays.
func (m *model) show(now reading) {
	if now.err != nil {
		m.err = now.err
		m.scroll()
		return
	}
	m.reading = now
	m.bars.Fill(m.locks)
	m.groups = listing.Grouped(m.locks)
	m.history.note(now, m.groups)
	m.refresh()
	m.arrange()
}

// arrange chooses and sorts the locks that are shown, and keeps the selected one visible.
func (m *model) arrange() {
	m.shown = slices.DeleteFunc(slices.Clone(m.groups), func(g listing.Group) bool {
		return !g.Matches(m.search) || m.unexpired && g.Expired()
	})
	listing.SortGroups(m.shown, m.order)
	m.scroll()
}

// page is how many locks are visible.
func (m *model) page() int { return max(m.height-around-len(m.warnings()), 1) }

// position returns the line of the selected lock. If it is gone, another one is selected.
func (m *model) position() int {
	i := slices.IndexFunc(m.shown, func(g listing.Group) bool { return lockOf(g) == m.selected })
	if i < 0 && len(m.shown) > 0 {
		i = min(m.top, len(m.shown)-1)
		m.selected = lockOf(m.shown[i])
	}
	return i
}

// scroll makes the selected line visible.
func (m *model) scroll() {
	i := m.position()
	m.top = min(max(m.top, i-m.page()+1), max(i, 0))
	m.top = max(min(m.top, len(m.shown)-m.page()), 0)
}

// move selects another lock, or another row of the one that is shown alone.
func (m *model) move(by int) {
	d := m.detail
	if m.place() != inLock || d.free || len(d.Rows) == 1 {
		m.scrollBy(by)
		return
	}
	d.chosen = min(max(d.chosen+by, 0), len(d.Rows)-1)
	_, line := m.alone()
	m.view.EnsureVisible(line, 0, 0)
}

// scrollBy selects another lock, or scrolls what is shown instead of the table.
func (m *model) scrollBy(lines int) {
	if m.place() != inTable {
		m.view.SetYOffset(m.view.YOffset() + lines)
		return
	}
	if i := m.position(); i >= 0 {
		m.selected = lockOf(m.shown[min(max(i+lines, 0), len(m.shown)-1)])
	}
	m.scroll()
}

// removed shows what became of the removal of a row.
func (m *model) removed(r removal) {
	switch {
	case r.err != nil:
		m.message = "not removed: " + format.Printable(r.err.Error())
	case r.deleted:
		m.message = "removed " + m.askedName
		if !r.row.Kept() {
			m.message += ", held by " + format.Printable(r.row.Holder)
		}
	default:
		m.message = "not removed: " + m.askedName + " was released or acquired by another holder"
	}
}

// aged returns a lock as it is now, some time after it was read, or as it was if that is all that is known.
func (m *model) aged(l listing.Lock) listing.Lock {
	if m.stale() != "" {
		return l
	}
	return l.After(max(m.now.Sub(m.at), 0))
}

// patience is how long the database may take for a reading until the last one is called old.
const patience = 3 * time.Second

// stale returns why the last reading is not what the table contains now, or "".
func (m *model) stale() string {
	waited := m.now.Sub(m.began)
	switch {
	case m.err != nil:
		return format.Printable(m.err.Error())
	case !m.began.IsZero() && waited >= patience:
		return "no answer for " + format.Duration(waited)
	default:
		return ""
	}
}
