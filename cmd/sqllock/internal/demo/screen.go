package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
)

// screen is the view for terminals: a lane for each worker, on which time moves to the
// left, and below them the progress. Each frame is drawn over the last one.
type screen struct {
	timeline *timeline
	out      io.Writer
	height   int // lines drawn last
}

// extraLines is the number of lines besides the lanes.
const extraLines = 5

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	eraseRest  = "\x1b[K"
)

func (s *screen) open() {
	_, _ = io.WriteString(s.out, hideCursor)
	s.draw(time.Now())
}

func (s *screen) close() {
	s.draw(time.Now())
	_, _ = io.WriteString(s.out, showCursor+"\n")
}

func (s *screen) show(event) error { return nil }

// draw writes a frame in one step, so that no half of one is visible.
func (s *screen) draw(now time.Time) {
	width, ok := format.TerminalWidth(s.out)
	if !ok {
		width = 80
	}
	var b strings.Builder
	if s.height > 0 {
		b.WriteString(text.CursorUp.Sprintn(s.height))
	}
	drawn := s.lines(now, width)
	s.height = len(drawn)
	for _, line := range drawn {
		b.WriteString("\r" + text.Trim(line, width-1) + text.Reset.EscapeSeq() + eraseRest + "\n")
	}
	_, _ = io.WriteString(s.out, b.String())
}

func (s *screen) lines(now time.Time, width int) []string {
	const nameWidth, stateWidth = 20, 18
	columns := min(max(width-nameWidth-stateWidth, 10), 100)
	var drawn []string
	for i, l := range s.timeline.lanes {
		name := fmt.Sprintf("worker %d", i+1)
		drawn = append(drawn, fmt.Sprintf("  %-10s%s %s  %s", name, text.Faint.Sprintf("%7d", l.pid),
			s.timeline.drawLane(i, now, columns), s.timeline.laneState(i, now)))
	}
	if len(drawn) == 0 {
		return nil
	}
	return append(drawn, s.legend(), "", s.progress(now), s.status(now), "")
}

func (s *screen) legend() string {
	parts := []string{text.FgGreen.Sprint("█") + " works"}
	if s.timeline.options.withoutLock {
		parts = append(parts, text.FgRed.Sprint("█")+" works, and another too")
	} else {
		parts = append(parts, text.FgYellow.Sprint("·")+" waits", text.FgRed.Sprint("✗")+" killed",
			text.FgMagenta.Sprint("░")+" dead, lease not expired")
	}
	return strings.Repeat(" ", 20) + strings.Join(parts, "   ")
}

// progress shows how much of the demo is done.
func (s *screen) progress(now time.Time) string {
	const length = 20
	t := s.timeline
	part := float64(t.done) / float64(t.options.rounds)
	if t.options.duration != 0 {
		part = float64(t.runningAt(now)) / float64(t.options.duration)
	}
	full := min(int(part*length), length)
	bar := text.FgCyan.Sprint(strings.Repeat("━", full)) + text.Faint.Sprint(strings.Repeat("─", length-full))
	overlaps := fmt.Sprintf("overlaps %d", t.overlaps())
	if t.overlaps() > 0 {
		overlaps = text.FgRed.Sprint(overlaps)
	}
	return fmt.Sprintf("  %s  %d%s rounds, counter %d  %s  %s", bar, t.done, t.ofRounds(), t.counter, overlaps, roughSeconds(t.runningAt(now)))
}

// status describes what is happening.
func (s *screen) status(now time.Time) string {
	t := s.timeline
	switch {
	case t.begun.IsZero():
		return "  The processes start."
	case t.options.withoutLock:
		return "  A process that reads the file while another is working overwrites its update."
	case t.kill == nil:
		return "  One process works at a time. Soon one will be killed while it holds the lock."
	case t.takeover == nil && now.Before(t.kill.expiry):
		return text.Bold.Sprintf("  Worker %d was killed while it held the lock; its lease expires in %s.", t.kill.worker+1, roughSeconds(t.kill.expiry.Sub(now)))
	case t.takeover == nil:
		return text.Bold.Sprintf("  The lease of worker %d has expired: another worker can acquire the lock.", t.kill.worker+1)
	default:
		return fmt.Sprintf("  Worker %d took over %s after the kill, when the lease had expired.",
			t.takeover.worker+1, roughSeconds(t.takeover.at.Sub(t.kill.at)))
	}
}
