package main

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"
)

var began = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }

// play makes the record of a demo with two workers and a time-to-live of a
// second: worker 1 works twice, worker 2 is killed, worker 1 takes over.
func play(takeover int, overlap bool) *record {
	r := newRecord(&demo{workers: 2, rounds: 3, ttl: time.Second}, "somewhere")
	r.lanes = make([]lane, 2)
	r.begin(began)
	one, two := &demoWorker{number: 1}, &demoWorker{number: 2}
	hanging := demoEvent{Kind: demoHanging, At: at(800), Waited: 600 * time.Millisecond, Left: time.Second, worker: two}
	for _, e := range []demoEvent{
		{Kind: demoWaiting, At: at(0), worker: one},
		{Kind: demoEntered, At: at(0), worker: one},
		{Kind: demoWaiting, At: at(200), worker: two},
		{Kind: demoFinished, At: at(400), worker: one},
		{Kind: demoWaiting, At: at(400), worker: one},
		{Kind: demoEntered, At: at(400), worker: one},
		{Kind: demoFinished, At: at(800), worker: one},
		hanging,
		{Kind: demoWaiting, At: at(900), worker: one},
	} {
		r.note(e)
	}
	r.noteKill(hanging, at(1000))
	r.note(demoEvent{Kind: demoEntered, At: at(takeover), Waited: time.Duration(takeover-900) * time.Millisecond, Overlap: overlap, worker: one})
	r.note(demoEvent{Kind: demoFinished, At: at(takeover + 200), worker: one})
	r.counter = 3
	return r
}

func TestRecord(t *testing.T) {
	t.Parallel()
	r := play(1900, false)
	if n := r.handoffs(); n != 2 {
		t.Errorf("%d hand-offs", n)
	}
	if median, longest := r.waiting(); median != 600*time.Millisecond || longest != time.Second {
		t.Errorf("waiting: median %v, longest %v", median, longest)
	}
	if r.takeover == nil || !r.takeover.at.Equal(at(1900)) || r.done != 3 {
		t.Errorf("take-over %+v after %d rounds", r.takeover, r.done)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	lost, short := play(1900, false), play(1900, false)
	lost.counter, short.done, short.counter = 2, 2, 2
	for name, test := range map[string]struct {
		record *record
		want   []fault
	}{
		"none":     {play(1900, false), nil},
		"just":     {play(1799, false), nil},
		"early":    {play(1700, false), []fault{tookOverEarly}},
		"overlaps": {play(1900, true), []fault{overlapped}},
		"lost":     {lost, []fault{lostUpdates}},
		"missing":  {short, []fault{roundsMissing}},
	} {
		if diff := cmp.Diff(test.want, test.record.faults()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if accused := strings.Contains(test.record.moral(), "Please report it"); accused != (test.want != nil) {
			t.Errorf("%s: %s", name, test.record.moral())
		}
	}
}

// TestStrip draws both lanes, of which no column shows two at work.
func TestStrip(t *testing.T) {
	t.Parallel()
	r := play(1900, false)
	now := at(2100).Add(frame)
	for i, want := range []string{
		"    ████████ ··········██",
		"      ······██✗░░░░░░░░  ",
	} {
		if got := stripped(r.strip(i, now, 25)); got != want {
			t.Errorf("worker %d\n got %q\nwant %q", i+1, got, want)
		}
	}
	// The window moves to the left.
	if got, want := stripped(r.strip(0, now.Add(3*frame), 10)), "·····██   "; got != want {
		t.Errorf("later\n got %q\nwant %q", got, want)
	}
}

var escape = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

func stripped(text string) string { return escape.ReplaceAllString(text, "") }

func TestPanel(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &panel{record: play(1900, false), out: &out}
	p.record.takeover = nil
	p.draw(at(1200))
	plain := stripped(out.String())
	contains(t, plain, "worker 1", "worker 2", "killed", "Worker 2 was killed while it held the lock; its lease ends in 0.6 s.", "3 of 3 rounds, the file says 3  overlaps 0")
	if got, want := strings.Count(plain, "\n"), 2+panelLines; got != want || p.height != want {
		t.Errorf("%d lines, %d remembered, want %d", got, p.height, want)
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
	if up := text.CursorUp.Sprintn(2 + panelLines); !strings.HasPrefix(out.String(), up) {
		t.Errorf("does not begin with %q: %q", up, out.String())
	}
	contains(t, stripped(out.String()), "The lease of worker 2 has ended")
}

func TestSummary(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := writeSummary(&out, play(1900, false)); err != nil {
		t.Fatal(err)
	}
	want := `rounds                      3 of 3                              ✓
overlaps seen               0                                   ✓
updates lost                0   (the file says 3)               ✓
hand-offs between processes 2
waiting for the lock        median 0.60 s, longest 1.00 s
take-over after the kill    0.90 s   (lease left: 0.80 s of 1s) ✓

No two of the 2 processes were ever in the file at once, so no update was lost; and the lock of the one that was killed was taken over 0.90 s later, when its lease had ended, and not before.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
