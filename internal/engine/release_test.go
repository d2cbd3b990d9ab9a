package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// A key is busy while it was released often lately, whatever the pauses: fifty times at once, or twice a second for a minute.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		interval time.Duration
		releases int
		busy     bool
	}{
		{"few at once", time.Microsecond, 49, false},
		{"many at once", time.Microsecond, 52, true},
		{"twice a second", time.Second / 2, 60, false},
		{"twice a second for a minute", time.Second / 2, 102, true},
		{"once a second for an hour", time.Second, 3600, false},
		{"seldom", time.Minute, 1000, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := &hold{locks: &Locks{began: time.Now()}, locals: []*localLock{{}}}
				busy := false
				for range test.releases {
					time.Sleep(test.interval)
					busy = h.countRelease()
				}
				if busy != test.busy {
					t.Errorf("busy: %v", busy)
				}
				if !busy {
					return
				}
				for range 1_000_000 {
					h.countRelease()
				}
				time.Sleep(mostAhead - busyAhead + 2*usedFor)
				if h.countRelease() {
					t.Error("it is busy after a pause")
				}
				h.fair = true
				if h.countRelease() {
					t.Error("a fair lock is busy")
				}
				h.fair, h.joint = false, true
				if h.countRelease() {
					t.Error("a joint lock is busy")
				}
			})
		})
	}
}
