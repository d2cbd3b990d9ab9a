package demo

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
)

// A view shows a demo while it runs: on a screen, or as lines.
type view interface {
	open()
	show(e event) error // after the timeline has added it
	draw(now time.Time) // at regular intervals
	close()
}

// newView prints the introduction, and returns the view for the output.
func newView(t *timeline) (view, error) {
	out := t.options.out
	width, terminal := format.TerminalWidth(out)
	if !terminal || os.Getenv("TERM") == "dumb" || !fits(out, t.options.workers) {
		_, err := fmt.Fprintf(out, "%s\n\n", t.introduction())
		return &lines{timeline: t, out: out}, err
	}
	_, err := fmt.Fprintf(out, "\n%s\n\n", text.WrapSoft(t.introduction(), min(width, 100)))
	return &screen{timeline: t, out: out}, err
}

// fits reports whether the terminal has enough lines for a screen: lines that have
// scrolled away cannot be drawn over.
func fits(w io.Writer, workers int) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, height, err := term.GetSize(int(file.Fd()))
	return err == nil && height > workers+extraLines
}

// introduction explains the demo to a new user.
func (t *timeline) introduction() string {
	if t.options.withoutLock {
		return fmt.Sprintf("%d processes repeatedly add 1 to the number in a file. No lock keeps them from working at the same time.", t.options.workers)
	}
	introduction := fmt.Sprintf("%d processes repeatedly add 1 to the number in a file. A process works only while it holds a lock, a row in %s. "+
		"One of them will be killed while it holds the lock.", t.options.workers, t.place)
	if t.page != "" {
		introduction += "\nWatch the lock at " + t.page
	}
	return introduction
}
