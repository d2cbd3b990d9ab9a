package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// A view shows a demo while it goes on: a panel on a terminal, else lines.
type view interface {
	open()
	show(e demoEvent) error // after the record has noted it
	draw(now time.Time)     // from time to time
	close()
}

// newView introduces the demo, and returns the view that suits the output.
func (d *demo) newView(r *record) (view, error) {
	width, terminal := terminalWidth(d.out)
	if !terminal || os.Getenv("TERM") == "dumb" || !fits(d.out, d.workers) {
		_, err := fmt.Fprintf(d.out, "%s\n\n", d.introduction(r))
		return &lines{record: r, out: d.out}, err
	}
	_, err := fmt.Fprintf(d.out, "\n%s\n\n", text.WrapSoft(d.introduction(r), min(width, 100)))
	return &panel{record: r, out: d.out}, err
}

// fits tells whether a panel for so many workers has room on a terminal: what has
// scrolled away cannot be drawn over.
func fits(w io.Writer, workers int) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, height, err := term.GetSize(int(file.Fd()))
	return err == nil && height > workers+panelLines
}

// introduction is for somebody who sees such a thing for the first time.
func (d *demo) introduction(r *record) string {
	if d.withoutLock {
		return fmt.Sprintf("%d processes add 1 to the number in a file, over and over, each without looking whether another is at it: nothing keeps them apart.", d.workers)
	}
	return fmt.Sprintf("%d processes add 1 to the number in a file, over and over, and only the one that holds a lock, a row in %s, may do so; "+
		"one of them will be killed while it holds the lock.", d.workers, r.place)
}

// of is the number of rounds that are wanted, as text, where it is fixed.
func (r *record) of() string {
	if r.demo.duration != 0 {
		return ""
	}
	return fmt.Sprintf(" of %d", r.demo.rounds)
}

// secondsText has the precision that suits moving figures; exactText that of
// results.
func secondsText(d time.Duration) string { return fmt.Sprintf("%.1f s", max(d, 0).Seconds()) }

func exactText(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
