package trial

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestFaults plays demos with two workers and a lease of a second: worker 1 works twice, worker 2 is killed 0.8 s
// before its lease expires, worker 1 takes over.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		takeover int // in milliseconds
		overlap  bool
		counter  int
		want     []string
		sums     string
	}{
		"none":     {1900, false, 3, nil, "takeover      0.90 s after the kill (lease left: 0.80 s of 1s)"},
		"just":     {1799, false, 3, nil, "was acquired by another one 0.80 s later, after its lease had expired."},
		"early":    {1700, false, 3, []string{"a takeover before the lease had expired"}, "takeover      0.70 s after"},
		"overlaps": {1900, true, 3, []string{"overlaps"}, "overlaps      1\n"},
		"lost":     {1900, false, 2, []string{"lost updates"}, "lost updates  1 (3 rounds, the file contains 2)"},
	} {
		var out strings.Builder
		began := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
		at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
		r := &record{options: &options{workers: 2, rounds: 3, ttl: time.Second, out: &out}, begun: began}
		r.finished(event{At: at(0)}, 1)
		r.finished(event{At: at(400)}, 1)
		r.killed(event{At: at(800), Left: time.Second}, 2, at(1000))
		r.counter = test.counter
		r.finished(event{At: at(test.takeover), Overlap: test.overlap}, 1)
		r.summarize()
		check.Must(t, r.err)
		if got := r.faults(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
		text := out.String()
		if !strings.Contains(text, test.sums) || strings.Contains(text, "OVERLAP") != test.overlap ||
			strings.Contains(text, "Please report it: "+strings.Join(test.want, ", ")+".") != (test.want != nil) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
