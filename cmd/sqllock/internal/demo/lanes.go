package demo

import (
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// frame is the time between two redraws, and the time that one column of a lane shows.
const frame = 100 * time.Millisecond

// drawLane draws the past of one worker, one column for each frame. Columns stand for
// fixed times, so that all lanes move together, and what is in the same column of two
// lanes happened at the same time.
func (t *timeline) drawLane(worker int, now time.Time, columns int) string {
	// Events of the last frame may not have arrived yet.
	latest := int(t.runningAt(now.Add(-frame)) / frame)
	var b strings.Builder
	var colour text.Colors
	run := ""
	flush := func() {
		b.WriteString(colour.Sprint(run))
		run = ""
	}
	for i := latest - columns; i < latest; i++ {
		cell, c := ' ', text.Colors(nil)
		if i >= 0 {
			cell, c = t.cell(worker, t.begun.Add(time.Duration(i)*frame+frame/2))
		}
		if !slices.Equal(c, colour) {
			flush()
			colour = c
		}
		run += string(cell)
	}
	flush()
	return b.String()
}

// cell shows what a worker did at one time.
func (t *timeline) cell(worker int, at time.Time) (rune, text.Colors) {
	if k := t.kill; k != nil && k.worker == worker && !at.Before(k.at) {
		switch {
		case at.Before(k.at.Add(frame)):
			return '✗', text.Colors{text.FgRed, text.Bold}
		case t.takeover == nil || at.Before(t.takeover.at):
			return '░', text.Colors{text.FgMagenta}
		}
		return ' ', nil
	}
	switch l := t.lanes[worker]; {
	case spanAt(l.holds, at) && t.othersWorkAt(worker, at):
		return '█', text.Colors{text.FgRed}
	case spanAt(l.holds, at):
		return '█', text.Colors{text.FgGreen}
	case spanAt(l.waits, at):
		return '·', text.Colors{text.FgYellow}
	}
	return ' ', nil
}

func (t *timeline) othersWorkAt(worker int, at time.Time) bool {
	for i, l := range t.lanes {
		if i != worker && spanAt(l.holds, at) {
			return true
		}
	}
	return false
}

// spanAt reports whether one of the spans contains a time. They are in order.
func spanAt(spans []span, at time.Time) bool {
	for _, s := range slices.Backward(spans) {
		if !at.Before(s.from) {
			return s.contains(at)
		}
	}
	return false
}

// laneState describes what a worker is doing.
func (t *timeline) laneState(worker int, now time.Time) string {
	l := t.lanes[worker]
	switch {
	case t.kill != nil && t.kill.worker == worker:
		return text.FgRed.Sprint("killed")
	case isOpen(l.holds) && t.options.withoutLock:
		return text.FgGreen.Sprint("works")
	case isOpen(l.holds):
		return text.FgGreen.Sprint("holds the lock")
	case isOpen(l.waits):
		return text.FgYellow.Sprint("waits " + roughSeconds(now.Sub(l.waits[len(l.waits)-1].from)))
	default:
		return ""
	}
}

func isOpen(spans []span) bool { return len(spans) > 0 && spans[len(spans)-1].to.IsZero() }
