package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// panel is the view for terminals: a lane for each worker, on which time runs to
// the left, and below it how far the demo is. It is drawn over itself.
type panel struct {
	record *record
	out    io.Writer
	height int // lines drawn last
}

// panelLines is what a panel has besides the lanes.
const panelLines = 5

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	eraseRest  = "\x1b[K"
)

func (p *panel) open() {
	_, _ = io.WriteString(p.out, hideCursor)
	p.draw(time.Now())
}

func (p *panel) close() {
	p.draw(time.Now())
	_, _ = io.WriteString(p.out, showCursor+"\n")
}

func (p *panel) show(demoEvent) error { return nil }

// draw writes everything at once, so that nobody sees half of it.
func (p *panel) draw(now time.Time) {
	width, ok := terminalWidth(p.out)
	if !ok {
		width = 80
	}
	var b strings.Builder
	if p.height > 0 {
		b.WriteString(text.CursorUp.Sprintn(p.height))
	}
	drawn := p.lines(now, width)
	p.height = len(drawn)
	for _, line := range drawn {
		b.WriteString("\r" + text.Trim(line, width-1) + text.Reset.EscapeSeq() + eraseRest + "\n")
	}
	_, _ = io.WriteString(p.out, b.String())
}

func (p *panel) lines(now time.Time, width int) []string {
	const nameWidth, stateWidth = 20, 18
	columns := min(max(width-nameWidth-stateWidth, 10), 100)
	var drawn []string
	for i, l := range p.record.lanes {
		name := fmt.Sprintf("worker %d", i+1)
		drawn = append(drawn, fmt.Sprintf("  %-10s%s %s  %s", name, text.Faint.Sprintf("%7d", l.pid),
			p.record.strip(i, now, columns), p.record.stateText(i, now)))
	}
	if len(drawn) == 0 {
		return nil
	}
	return append(drawn, p.legend(), "", p.progress(now), p.news(now), "")
}

func (p *panel) legend() string {
	parts := []string{text.FgGreen.Sprint("█") + " at work"}
	if p.record.demo.withoutLock {
		parts = append(parts, text.FgRed.Sprint("█")+" together with another")
	} else {
		parts = append(parts, text.FgYellow.Sprint("·")+" waits", text.FgRed.Sprint("✗")+" killed",
			text.FgMagenta.Sprint("░")+" dead, but its lease runs")
	}
	return strings.Repeat(" ", 20) + strings.Join(parts, "   ")
}

// progress is how far the demo is.
func (p *panel) progress(now time.Time) string {
	const length = 20
	r := p.record
	part := float64(r.done) / float64(r.demo.rounds)
	if r.demo.duration != 0 {
		part = float64(r.runningAt(now)) / float64(r.demo.duration)
	}
	full := min(int(part*length), length)
	bar := text.FgCyan.Sprint(strings.Repeat("━", full)) + text.Faint.Sprint(strings.Repeat("─", length-full))
	overlaps := fmt.Sprintf("overlaps %d", r.overlaps())
	if r.overlaps() > 0 {
		overlaps = text.FgRed.Sprint(overlaps)
	}
	return fmt.Sprintf("  %s  %d%s rounds, the file says %d  %s  %s", bar, r.done, r.of(), r.counter, overlaps, secondsText(r.runningAt(now)))
}

// news says in words what is going on.
func (p *panel) news(now time.Time) string {
	r := p.record
	switch {
	case r.begun.IsZero():
		return "  The processes start."
	case r.demo.withoutLock:
		return "  Whoever reads the file while another is at work overwrites its update."
	case r.kill == nil:
		return "  One at a time. Soon one will be killed while it holds the lock."
	case r.takeover == nil && now.Before(r.kill.lease):
		return text.Bold.Sprintf("  Worker %d was killed while it held the lock; its lease ends in %s.", r.kill.worker+1, secondsText(r.kill.lease.Sub(now)))
	case r.takeover == nil:
		return text.Bold.Sprintf("  The lease of worker %d has ended: whoever waits may take the lock over.", r.kill.worker+1)
	default:
		return fmt.Sprintf("  Worker %d took over %s after the kill: the dead one's lease had ended.",
			r.takeover.worker+1, secondsText(r.takeover.at.Sub(r.kill.at)))
	}
}

// runningAt is how long the demo had been going on.
func (r *record) runningAt(now time.Time) time.Duration {
	if r.begun.IsZero() {
		return 0
	}
	return now.Sub(r.begun)
}
