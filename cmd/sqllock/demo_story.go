package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A role is what a worker is doing.
type role struct {
	what  string
	since time.Time
	done  int // rounds
}

// killed is what a worker does after it was killed.
const killed = "killed"

// A story is what has happened so far.
type story struct {
	order  []string
	roles  map[string]*role
	holder string // the last to hold the lock

	writes, handOffs, overlaps int
	waits                      []time.Duration

	wanted    bool // whether a victim has been asked for
	victim    string
	grant     time.Time     // when the victim got the lock
	death     time.Time     // when it was killed
	takeOver  time.Duration // from its grant to the next
	successor string
	fresh     bool // whether the last event was the take-over

	counter int
}

func newStory(d *demo) *story {
	s := &story{roles: make(map[string]*role)}
	for i := range d.workers {
		name := string(rune('A' + i))
		s.order = append(s.order, name)
		s.roles[name] = &role{what: "starts", since: time.Now()}
	}
	return s
}

// take takes one event in.
func (s *story) take(e event, now time.Time) {
	r := s.roles[e.Worker]
	s.fresh = false
	switch e.What {
	case waits, released:
		r.what, r.since = waits, now
	case holds:
		r.what, r.since = holds, now
		s.hold(e, now)
	case stalls:
		s.victim, s.grant = e.Worker, r.since
	case goes:
		r.what, r.since = goes, now
	case overlaps:
		s.overlaps++
	case wrote:
		s.writes++
		r.done++
	}
}

func (s *story) hold(e event, now time.Time) {
	s.waits = append(s.waits, e.Waited)
	if s.holder != "" && s.holder != e.Worker {
		s.handOffs++
	}
	s.holder = e.Worker
	if !s.death.IsZero() && s.successor == "" {
		s.successor, s.takeOver, s.fresh = e.Worker, now.Sub(s.grant), true
	}
}

// kill notes the death of a worker.
func (s *story) kill(worker string, now time.Time) {
	s.death = now
	s.roles[worker].what, s.roles[worker].since = killed, now
}

// end takes the counter in, as it stands when all is over.
func (s *story) end(counter int) { s.counter = counter }

func (s *story) lost() int { return s.writes - s.counter }

// clean tells whether the story ended well.
func (s *story) clean() bool { return s.overlaps == 0 && s.lost() == 0 }

// summarize prints what the demo has shown.
func (s *story) summarize(out io.Writer, d *demo) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight}})
	t.AppendRow(table.Row{"rounds: updates written", s.writes, ""})
	t.AppendRow(table.Row{"counter at the end", s.counter, ""})
	t.AppendRow(table.Row{"updates lost", s.lost(), verdict(s.lost() == 0)})
	t.AppendRow(table.Row{"overlaps seen", s.overlaps, verdict(s.overlaps == 0)})
	if !d.withoutLock {
		t.AppendRow(table.Row{"hand-offs between processes", s.handOffs, ""})
		t.AppendRow(table.Row{"waiting time, median", median(s.waits).Round(time.Millisecond), ""})
		t.AppendRow(table.Row{"waiting time, longest", slices.Max(append(s.waits, 0)).Round(time.Millisecond), ""})
	}
	if s.successor != "" {
		t.AppendSeparator()
		t.AppendRow(table.Row{fmt.Sprintf("%s killed while holding; time-to-live", s.victim), d.ttl, ""})
		t.AppendRow(table.Row{fmt.Sprintf("%s took over, after %s had acquired", s.successor, s.victim), s.takeOver.Round(time.Millisecond), ""})
	}
	_, err := fmt.Fprintf(out, "%s\n\n%s\n", t.Render(), s.moral(d))
	return err
}

// moral says in a sentence what it was all about.
func (s *story) moral(d *demo) string {
	switch {
	case s.clean() && d.withoutLock:
		return "Without the lock nothing was lost, by luck. Run it again."
	case s.clean() && s.successor == "":
		return "One at a time: no update was lost."
	case s.clean():
		return "One at a time, over all processes: no update was lost, and the lock of the dead came free\nby itself when its time-to-live had passed, not before."
	case d.withoutLock:
		return fmt.Sprintf("Without the lock they were in at once, and %d of %d updates were lost. Now run it with the lock.", s.lost(), s.writes)
	default:
		return "This must not happen: please report it, with the database and its version."
	}
}

func verdict(ok bool) string {
	if ok {
		return "✓"
	}
	return "✗"
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
