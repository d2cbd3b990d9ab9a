package main

import (
	"fmt"
	"io"
	"time"
)

// lines is the view for pipes and files: a line for each event that matters.
type lines struct {
	record *record
	out    io.Writer
}

func (l *lines) open()          {}
func (l *lines) draw(time.Time) {}
func (l *lines) close()         { _, _ = fmt.Fprintln(l.out) }

func (l *lines) show(e demoEvent) error {
	r, n := l.record, e.worker.number
	switch e.Kind {
	case demoEntered:
		return l.entered(e, n)
	case demoHanging:
		return l.line(r.kill.at, n, "holds the lock and is killed (SIGKILL); its lease has %s left, until then nobody gets in", exactText(r.kill.lease.Sub(r.kill.at)))
	case demoFinished:
		return l.line(e.At, n, "has done round %d%s, %s; the file says %d", r.done, r.of(), l.howLong(n-1), r.counter)
	case demoReady, demoWaiting, demoEnded:
	}
	return nil
}

func (l *lines) entered(e demoEvent, n int) error {
	switch r := l.record; {
	case e.Overlap:
		return l.line(e.At, n, "OVERLAP: begins to work while another process is at it")
	case r.takeover != nil && r.takeover.at.Equal(e.At):
		return l.line(e.At, n, "takes over, %s after the kill", exactText(e.At.Sub(r.kill.at)))
	}
	return nil
}

// howLong says how long the last round of a worker took.
func (l *lines) howLong(worker int) string {
	holds := l.record.lanes[worker].holds
	last := holds[len(holds)-1]
	held := exactText(last.to.Sub(last.from))
	if l.record.demo.withoutLock {
		return "worked " + held
	}
	return fmt.Sprintf("waited %s, held %s", exactText(l.record.entryOf(worker).waited), held)
}

func (l *lines) line(at time.Time, worker int, format string, args ...any) error {
	_, err := fmt.Fprintf(l.out, "%8s  worker %d  %s\n", exactText(at.Sub(l.record.begun)), worker, fmt.Sprintf(format, args...))
	return err
}

// entryOf returns the last entry of a worker that has one.
func (r *record) entryOf(worker int) (last entry) {
	for _, e := range r.entries {
		if e.worker == worker {
			last = e
		}
	}
	return last
}
