package demo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqllock/sqllock/internal/test/check"
)

var began = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }

// play returns the record of a demo with two workers and a time-to-live of a second, and what it has
// printed: worker 1 works twice, worker 2 is killed, worker 1 takes over.
func play(t *testing.T, takeover int, overlap bool, counter int) (*record, *strings.Builder) {
	t.Helper()
	var out strings.Builder
	r := &record{options: &options{workers: 2, rounds: 3, ttl: time.Second, out: &out}, begun: began}
	const work = 200 * time.Millisecond
	for _, err := range []error{
		r.finished(event{At: at(0), Worked: 2 * work, worker: 1}, 1),
		r.finished(event{At: at(400), Worked: 2 * work, worker: 1}, 2),
		r.killed(event{At: at(800), Waited: 600 * time.Millisecond, Left: time.Second, worker: 2}, at(1000)),
		r.finished(event{At: at(takeover), Waited: time.Duration(takeover-900) * time.Millisecond, Worked: work, Overlap: overlap, worker: 1}, counter),
	} {
		check.Must(t, err)
	}
	return r, &out
}

func TestOutput(t *testing.T) {
	t.Parallel()
	r, out := play(t, 1900, false, 3)
	check.Must(t, writeSummary(r))
	want := `  0.40 s  worker 1  has done round 1 of 3, waited 0.00 s, held 0.40 s; the file contains 1
  0.80 s  worker 1  has done round 2 of 3, waited 0.00 s, held 0.40 s; the file contains 2
  1.00 s  worker 2  holds the lock and is killed (SIGKILL); its lease has 0.80 s left, until then no other worker can acquire the lock
  1.90 s  worker 1  takes over, 0.90 s after the kill
  2.10 s  worker 1  has done round 3 of 3, waited 1.00 s, held 0.20 s; the file contains 3

rounds                      3 of 3                    ✓
overlaps                    0                         ✓
lost updates                0   (the file contains 3) ✓
hand-offs between processes 2
waiting for the lock        median 0.60 s, longest 1.00 s
takeover after the kill     0.90 s   (lease left: 0.80 s of 1s) ✓

No two of the 2 processes worked at the same time, so no update was lost. The lock of the killed process was acquired by another one 0.90 s later, after its lease had expired.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		takeover int
		overlap  bool
		counter  int
		rounds   int
		want     []string
	}{
		"none":     {takeover: 1900, counter: 3, rounds: 3},
		"just":     {takeover: 1799, counter: 3, rounds: 3},
		"early":    {takeover: 1700, counter: 3, rounds: 3, want: []string{"a takeover before the lease had expired"}},
		"overlaps": {takeover: 1900, counter: 3, rounds: 3, overlap: true, want: []string{"overlaps"}},
		"lost":     {takeover: 1900, counter: 2, rounds: 3, want: []string{"lost updates"}},
		"missing":  {takeover: 1900, counter: 3, rounds: 4, want: []string{"missing rounds"}},
	} {
		r, out := play(t, test.takeover, test.overlap, test.counter)
		r.options.rounds = test.rounds
		if got := r.faults(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
		if reported := strings.Contains(r.conclusion(), "Please report it: "); reported != (test.want != nil) {
			t.Errorf("%s: %s", name, r.conclusion())
		}
		if strings.Contains(out.String(), "OVERLAP") != test.overlap {
			t.Errorf("%s: %s", name, out)
		}
	}
}
