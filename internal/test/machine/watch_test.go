package machine

import (
	"testing"
	"time"
)

// TestStoodStill tells a watch when something ran.
func TestStoodStill(t *testing.T) {
	t.Parallel()
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	w := &Watch{last: at(0)}
	for _, ms := range []int{1, 2, 302, 303, 304, 10, 404, 3_600_000} { // 10 is too late, and the last is later than now
		w.ran(at(ms))
	}
	for _, test := range []struct{ from, to, want int }{
		{0, 2, 0},
		{0, 3, 1},
		{0, 302, 300},
		{102, 202, 100},
		{302, 304, 0},
		{0, 404, 400},
		{404, 1000, 596},
	} {
		if got := w.StoodStill(at(test.from), at(test.to)); got != time.Duration(test.want)*time.Millisecond {
			t.Errorf("between %d and %d: %v, want %d ms", test.from, test.to, got, test.want)
		}
	}
}
