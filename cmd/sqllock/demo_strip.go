package main

import (
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// strip draws the past of one lane, a column for each frame. Columns stand for
// fixed instants, so that the picture moves as a whole, and what is in the same
// column of two lanes happened at the same time.
func (r *record) strip(worker int, now time.Time, columns int) string {
	// Events are on their way for a moment.
	latest := int(r.runningAt(now.Add(-frame)) / frame)
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
			cell, c = r.cell(worker, r.begun.Add(time.Duration(i)*frame+frame/2))
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

// cell is what a worker did at an instant.
func (r *record) cell(worker int, at time.Time) (rune, text.Colors) {
	if k := r.kill; k != nil && k.worker == worker && !at.Before(k.at) {
		switch {
		case at.Before(k.at.Add(frame)):
			return '✗', text.Colors{text.FgRed, text.Bold}
		case r.takeover == nil || at.Before(r.takeover.at):
			return '░', text.Colors{text.FgMagenta}
		}
		return ' ', nil
	}
	switch l := r.lanes[worker]; {
	case spanAt(l.holds, at) && r.othersHoldAt(worker, at):
		return '█', text.Colors{text.FgRed}
	case spanAt(l.holds, at):
		return '█', text.Colors{text.FgGreen}
	case spanAt(l.waits, at):
		return '·', text.Colors{text.FgYellow}
	}
	return ' ', nil
}

func (r *record) othersHoldAt(worker int, at time.Time) bool {
	for i, l := range r.lanes {
		if i != worker && spanAt(l.holds, at) {
			return true
		}
	}
	return false
}

// spanAt tells whether one of the spans, which are in order, contains an instant.
func spanAt(spans []span, at time.Time) bool {
	for _, s := range slices.Backward(spans) {
		if !at.Before(s.from) {
			return s.contains(at)
		}
	}
	return false
}

// stateText says what a worker does now.
func (r *record) stateText(worker int, now time.Time) string {
	l := r.lanes[worker]
	switch {
	case r.kill != nil && r.kill.worker == worker:
		return text.FgRed.Sprint("killed")
	case isOpen(l.holds) && r.demo.withoutLock:
		return text.FgGreen.Sprint("works")
	case isOpen(l.holds):
		return text.FgGreen.Sprint("holds the lock")
	case isOpen(l.waits):
		return text.FgYellow.Sprint("waits " + secondsText(now.Sub(l.waits[len(l.waits)-1].from)))
	default:
		return ""
	}
}

func isOpen(spans []span) bool { return len(spans) > 0 && spans[len(spans)-1].to.IsZero() }
