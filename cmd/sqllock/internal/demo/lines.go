package demo

import (
	"fmt"
	"io"
	"time"
)

// lines is the view for pipes and files: one line for each important event.
type lines struct {
	timeline *timeline
	out      io.Writer
}

func (l *lines) open()          {}
func (l *lines) draw(time.Time) {}
func (l *lines) close()         { _, _ = fmt.Fprintln(l.out) }

func (l *lines) show(e event) error {
	t := l.timeline
	switch e.Kind {
	case entered:
		return l.showEntry(e)
	case hanging:
		return l.line(t.kill.at, e.worker, "holds the lock and is killed (SIGKILL); its lease has %s left, until then no other worker can acquire the lock", exactSeconds(t.kill.expiry.Sub(t.kill.at)))
	case finished:
		return l.line(e.At, e.worker, "has done round %d%s, %s; the file contains %d", t.done, t.ofRounds(), l.times(e.worker-1), t.counter)
	case ready, waiting, ended:
	}
	return nil
}

func (l *lines) showEntry(e event) error {
	switch t := l.timeline; {
	case e.Overlap:
		return l.line(e.At, e.worker, "OVERLAP: starts to work while another process is working")
	case t.takeover != nil && t.takeover.at.Equal(e.At):
		return l.line(e.At, e.worker, "takes over, %s after the kill", exactSeconds(e.At.Sub(t.kill.at)))
	}
	return nil
}

// times describes how long the last round of a worker took.
func (l *lines) times(worker int) string {
	holds := l.timeline.lanes[worker].holds
	last := holds[len(holds)-1]
	held := exactSeconds(last.to.Sub(last.from))
	if l.timeline.options.withoutLock {
		return "worked " + held
	}
	return fmt.Sprintf("waited %s, held %s", exactSeconds(l.timeline.lastEntry(worker).waited), held)
}

func (l *lines) line(at time.Time, worker int, format string, args ...any) error {
	_, err := fmt.Fprintf(l.out, "%8s  worker %d  %s\n", exactSeconds(at.Sub(l.timeline.begun)), worker, fmt.Sprintf(format, args...))
	return err
}
