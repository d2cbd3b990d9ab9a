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
	for _, ms := range []int{1, 2, 302, 303, 304, 3_600_000} { // the last is later than now
		w.ran(at(ms))
	}
	for _, test := range []struct {
		from, to, atLeast int
		want              bool
	}{
		{0, 2, 6, false},
		{0, 3, 6, true},
		{1, 400, 300, true},
		{1, 400, 301, true}, // the last began at 304
		{1, 303, 301, false},
		{302, 304, 6, false},
	} {
		if got := w.StoodStill(at(test.from), at(test.to), time.Duration(test.atLeast)*time.Millisecond); got != test.want {
			t.Errorf("between %d and %d, at least %d: %t", test.from, test.to, test.atLeast, got)
		}
	}
}

// TestWatch has a watch of a process that does run.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := StartWatch()
	began := time.Now()
	time.Sleep(10 * time.Millisecond)
	w.Stop()
	if w.StoodStill(began, time.Now(), time.Hour) {
		t.Error("it did not run for an hour")
	}
}

// TestShare shares a watch, and then another one.
func TestShare(t *testing.T) {
	t.Parallel()
	first, giveBack := Share()
	second, giveBackToo := Share()
	if first != second {
		t.Error("two watches at once")
	}
	giveBack()
	giveBack() // does nothing
	third, giveBackThird := Share()
	if third != second {
		t.Error("two watches at once, after one was given back")
	}
	giveBackToo()
	giveBackThird()
	if later, giveBack := Share(); later == first {
		t.Error("the watch did not end")
	} else {
		giveBack()
	}
}
