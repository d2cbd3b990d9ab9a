package demo

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sqllock/sqllock/internal/test/program"
)

var began = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }

// play returns the timeline of a demo with two workers and a time-to-live of a
// second: worker 1 works twice, worker 2 is killed, worker 1 takes over.
func play(takeover int, overlap bool) *timeline {
	r := newTimeline(&options{workers: 2, rounds: 3, ttl: time.Second}, "somewhere")
	r.lanes = make([]lane, 2)
	r.begin(began)
	const one, two = 1, 2
	hang := event{Kind: hanging, At: at(800), Waited: 600 * time.Millisecond, Left: time.Second, worker: two}
	for _, e := range []event{
		{Kind: waiting, At: at(0), worker: one},
		{Kind: entered, At: at(0), worker: one},
		{Kind: waiting, At: at(200), worker: two},
		{Kind: finished, At: at(400), worker: one},
		{Kind: waiting, At: at(400), worker: one},
		{Kind: entered, At: at(400), worker: one},
		{Kind: finished, At: at(800), worker: one},
		hang,
		{Kind: waiting, At: at(900), worker: one},
	} {
		r.add(e)
	}
	r.addKill(hang, at(1000))
	r.add(event{Kind: entered, At: at(takeover), Waited: time.Duration(takeover-900) * time.Millisecond, Overlap: overlap, worker: one})
	r.add(event{Kind: finished, At: at(takeover + 200), worker: one})
	r.counter = 3
	return r
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	r := play(1900, false)
	if n := r.handoffs(); n != 2 {
		t.Errorf("%d hand-offs", n)
	}
	if median, longest := r.waitTimes(); median != 600*time.Millisecond || longest != time.Second {
		t.Errorf("waiting: median %v, longest %v", median, longest)
	}
	if r.takeover == nil || !r.takeover.at.Equal(at(1900)) || r.done != 3 {
		t.Errorf("takeover %+v after %d rounds", r.takeover, r.done)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	lost, short := play(1900, false), play(1900, false)
	lost.counter, short.done, short.counter = 2, 2, 2
	for name, test := range map[string]struct {
		timeline *timeline
		want     []fault
	}{
		"none":     {play(1900, false), nil},
		"just":     {play(1799, false), nil},
		"early":    {play(1700, false), []fault{tookOverEarly}},
		"overlaps": {play(1900, true), []fault{overlapped}},
		"lost":     {lost, []fault{lostUpdates}},
		"missing":  {short, []fault{roundsMissing}},
	} {
		if diff := cmp.Diff(test.want, test.timeline.faults()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if reported := strings.Contains(test.timeline.conclusion(), "Please report it"); reported != (test.want != nil) {
			t.Errorf("%s: %s", name, test.timeline.conclusion())
		}
	}
}

// TestDrawLane draws both lanes. No column shows two workers that work.
func TestDrawLane(t *testing.T) {
	t.Parallel()
	r := play(1900, false)
	now := at(2100).Add(frame)
	for i, want := range []string{
		"    ████████ ··········██",
		"      ······██✗░░░░░░░░  ",
	} {
		if got := stripped(r.drawLane(i, now, 25)); got != want {
			t.Errorf("worker %d\n got %q\nwant %q", i+1, got, want)
		}
	}
	// The window moves to the left.
	if got, want := stripped(r.drawLane(0, now.Add(3*frame), 10)), "·····██   "; got != want {
		t.Errorf("later\n got %q\nwant %q", got, want)
	}
}

var escape = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

func stripped(text string) string { return escape.ReplaceAllString(text, "") }

func TestScreen(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &screen{timeline: play(1900, false), out: &out}
	p.timeline.takeover = nil
	p.draw(at(1200))
	plain := stripped(out.String())
	program.Contains(t, plain, "worker 1", "worker 2", "killed", "Worker 2 was killed while it held the lock; its lease expires in 0.6 s.", "3 of 3 rounds, counter 3  overlaps 0")
	if got, want := strings.Count(plain, "\n"), 2+extraLines; got != want || p.height != want {
		t.Errorf("%d lines, height %d, want %d", got, p.height, want)
	}
	for line := range strings.Lines(plain) {
		if n := utf8.RuneCountInString(strings.Trim(line, "\r\n")); n >= 80 {
			t.Errorf("%d columns do not fit on a terminal of 80: %q", n, line)
		}
	}
	if strings.Contains(plain, "…") || strings.Contains(plain, "~") {
		t.Errorf("something was cut off:\n%s", plain)
	}
	out.Reset()
	p.draw(at(1900))
	if up := text.CursorUp.Sprintn(2 + extraLines); !strings.HasPrefix(out.String(), up) {
		t.Errorf("does not begin with %q: %q", up, out.String())
	}
	program.Contains(t, stripped(out.String()), "The lease of worker 2 has expired")
}

func TestSummary(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := writeSummary(&out, play(1900, false)); err != nil {
		t.Fatal(err)
	}
	want := `rounds                      3 of 3                              ✓
overlaps                    0                                   ✓
lost updates                0   (the file contains 3)           ✓
hand-offs between processes 2
waiting for the lock        median 0.60 s, longest 1.00 s
takeover after the kill     0.90 s   (lease left: 0.80 s of 1s) ✓

No two of the 2 processes worked at the same time, so no update was lost. The lock of the killed process was acquired by another one 0.90 s later, after its lease had expired.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
