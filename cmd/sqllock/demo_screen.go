package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// A screen shows the demo: on a terminal a panel that is drawn again and again,
// elsewhere a line for each thing that happens.
type screen struct {
	out   io.Writer
	d     *demo
	began time.Time
	frame time.Duration // between two drawings
	live  bool
	lines int // of the panel that stands there
}

func newScreen(out io.Writer, d *demo) *screen {
	file, ok := out.(*os.File)
	live := ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
	return &screen{out: out, d: d, began: time.Now(), frame: 80 * time.Millisecond, live: live}
}

// introduce says what is going on.
func (s *screen) introduce(database string) {
	how := fmt.Sprintf("A lock in %s lets one in at a time; it ends %v after it was taken, if its holder dies.", database, s.d.ttl)
	if s.d.withoutLock {
		how = "There is no lock: they all go in when they like."
	}
	s.print("%d processes increment one counter: read, work a little, write. %s\n\n", s.d.workers, how)
}

// show tells one event, where there is no panel.
func (s *screen) show(story *story, e event) {
	if s.live {
		s.draw(story)
		return
	}
	at := fmt.Sprintf("%6.2fs  %s ", time.Since(s.began).Seconds(), e.Worker)
	switch {
	case e.What == holds && story.fresh:
		s.print("%stakes over, %v after %s had acquired\n", at, story.takeOver.Round(time.Millisecond), story.victim)
	case e.What == holds && !s.d.withoutLock:
		s.print("%sholds, after waiting %v\n", at, e.Waited.Round(time.Millisecond))
	case e.What == wrote:
		s.print("%swrote %d\n", at, e.Value)
	case e.What == stalls:
		s.print("%sis killed while it holds (SIGKILL)\n", at)
	case e.What == overlaps:
		s.print("%sis not alone: overlap!\n", at)
	}
}

// draw draws the panel over the last one.
func (s *screen) draw(story *story) {
	if !s.live {
		return
	}
	var panel strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&panel, "\x1b[%dA", s.lines)
	}
	lines := s.panel(story)
	for _, line := range lines {
		panel.WriteString("\x1b[2K" + line + "\n")
	}
	s.lines = len(lines)
	s.print("%s", panel.String())
}

// leave draws the panel for the last time.
func (s *screen) leave(story *story) {
	s.draw(story)
	s.print("\n")
}

// barWidth is the width of the progress bar in characters.
const barWidth = 40

func (s *screen) panel(story *story) []string {
	var lines []string
	for _, name := range story.order {
		lines = append(lines, s.lane(name, story.roles[name]))
	}
	full := min(barWidth*story.writes/s.d.rounds, barWidth)
	bar := text.FgGreen.Sprint(strings.Repeat("█", full)) + text.Faint.Sprint(strings.Repeat("░", barWidth-full))
	return append(lines, "", fmt.Sprintf("  %s %d/%d updates", bar, story.writes, s.d.rounds), "  "+s.news(story))
}

// lane is the line of one worker.
func (s *screen) lane(name string, r *role) string {
	since := time.Since(r.since)
	what := text.Faint.Sprint("· starts")
	switch r.what {
	case holds:
		what = text.Colors{text.FgGreen, text.Bold}.Sprint("● HOLDS the lock")
		if s.d.withoutLock {
			what = text.FgYellow.Sprint("● is in")
		}
	case waits:
		what = text.FgHiBlack.Sprintf("○ waits %.1fs", since.Seconds())
	case goes:
		what = text.Faint.Sprint("✓ has nothing left to do")
	case killed:
		what = text.FgRed.Sprintf("✗ killed %.1fs ago, holding the lock", since.Seconds())
	}
	return fmt.Sprintf("  %s  %3d done  %s", text.Bold.Sprint(name), r.done, what)
}

// news is the line for what is out of the ordinary.
func (s *screen) news(story *story) string {
	switch {
	case story.overlaps > 0:
		return text.FgRed.Sprintf("%d times somebody was not alone", story.overlaps)
	case story.death.IsZero():
		return ""
	case story.successor == "":
		left := max(s.d.ttl-time.Since(story.grant), 0)
		return text.FgYellow.Sprintf("%s is dead, and its lock lasts for another %.1fs: nobody gets in", story.victim, left.Seconds())
	default:
		return text.FgGreen.Sprintf("%s took the lock of %s over, %v after %s had acquired it", story.successor, story.victim,
			story.takeOver.Round(time.Millisecond), story.victim)
	}
}

// print writes to the screen. If that fails there is nobody left to tell.
func (s *screen) print(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, format, args...)
}
