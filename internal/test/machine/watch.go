// Package machine knows when this process did not run, because the machine was busy or stood still.
// Then timers are late, leases end before they can be renewed, and a test in real time shows nothing.
package machine

import (
	"slices"
	"sync"
	"time"
)

// A Watch notes when nothing ran. It is safe for concurrent use.
type Watch struct {
	mu    sync.Mutex
	last  time.Time // when something ran last
	still []interval

	done     chan struct{}
	watching sync.WaitGroup
}

type interval struct{ from, to time.Time }

const (
	beat = 2 * time.Millisecond
	// late is how long a goroutine that waits for a beat may wait.
	late = 6 * time.Millisecond
)

// StartWatch returns a watch that notes until Stop is called.
func StartWatch() *Watch {
	w := &Watch{last: time.Now(), done: make(chan struct{})}
	w.watching.Go(func() {
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-w.done:
				return
			case <-tick.C:
				w.ran(time.Now())
			}
		}
	})
	return w
}

// Stop ends the watch. It must be called once.
func (w *Watch) Stop() {
	close(w.done)
	w.watching.Wait()
}

func (w *Watch) ran(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.last) { // another goroutine was faster
		return
	}
	if now.Sub(w.last) > late {
		w.still = append(w.still, interval{w.last, now})
	}
	w.last = now
}

// StoodStill returns for how long nothing ran between from and to. Times of less than 6 ms do not count.
func (w *Watch) StoodStill(from, to time.Time) (still time.Duration) {
	w.ran(time.Now()) // after a stop the caller may be the first to run
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.still {
		still += max(0, earlier(i.to, to).Sub(later(i.from, from)))
	}
	return still
}

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
