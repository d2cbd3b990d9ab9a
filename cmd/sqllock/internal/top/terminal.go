package top

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
)

// redrawEvery is how often the times on the screen move.
const redrawEvery = 200 * time.Millisecond

// What switches a terminal to a screen of its own, and back.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	eraseLine   = "\x1b[K"
	eraseBelow  = "\x1b[J"
)

// A terminal is where the user looks and types.
type terminal struct{ in, out *os.File }

// openTerminal reports whether both ends are a terminal.
func openTerminal(in io.Reader, out io.Writer) (terminal, bool) {
	from, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(from.Fd())) {
		return terminal{}, false
	}
	to, ok := out.(*os.File)
	return terminal{from, to}, ok && term.IsTerminal(int(to.Fd()))
}

// watch shows the table until the user quits or ctx ends.
func (t terminal) watch(ctx context.Context, r *sqllock.Repository, o options) error {
	m := &model{order: listing.Order(o.sort)}
	first := read(ctx, r, o)
	if first.err != nil {
		return first.err // there is nothing to show yet
	}
	m.update(first)
	// The command ends with other signals already. These would leave the terminal as it is now.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	before, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(int(t.in.Fd()), before) }()
	_, _ = io.WriteString(t.out, enterScreen)
	defer func() { _, _ = io.WriteString(t.out, leaveScreen) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.loop(ctx, m, r, o)
	return nil
}

// loop shows readings and obeys keys. The database is asked in the background, so that keys have
// their effect at once.
func (t terminal) loop(ctx context.Context, m *model, r *sqllock.Repository, o options) {
	keys := t.keys(ctx)
	readings := make(chan reading, 1)
	removals := make(chan func(), 1)
	next := time.NewTimer(m.pause(o.interval))
	defer next.Stop()
	redraw := time.NewTicker(redrawEvery)
	defer redraw.Stop()
	for n := 1; o.count == 0 || n <= o.count; {
		t.draw(m, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-redraw.C:
		case <-next.C:
			if m.paused {
				next.Reset(o.interval)
				continue
			}
			go func() { readings <- read(ctx, r, o) }()
		case now := <-readings:
			n++
			m.update(now)
			next.Reset(now.pause(o.interval))
		case done := <-removals:
			done()
		case k, ok := <-keys:
			if !ok {
				return
			}
			switch m.press(k) {
			case quit:
				return
			case remove:
				asked := m.asked
				go func() {
					deleted, err := r.DeleteRow(ctx, asked)
					removals <- func() { m.removed(asked, deleted, err) }
				}()
			case nothing:
			}
		}
	}
}

// keys delivers what the user types, until the input or ctx ends. The goroutine that reads ends
// with the process.
func (t terminal) keys(ctx context.Context) <-chan key {
	keys := make(chan key)
	go func() {
		defer close(keys)
		buffer := make([]byte, 256)
		for {
			n, err := t.in.Read(buffer)
			for _, k := range keysOf(string(buffer[:n])) {
				select {
				case keys <- k:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return keys
}

// draw writes a frame in one step, so that no half of one is visible.
func (t terminal) draw(m *model, now time.Time) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	var b strings.Builder
	b.WriteString(toTop)
	for i, line := range m.frame(width, height, now) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(text.Trim(line, width) + text.Reset.EscapeSeq() + eraseLine)
	}
	b.WriteString(eraseBelow)
	_, _ = io.WriteString(t.out, b.String())
}
