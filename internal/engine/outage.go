package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/jitter"
)

// longestOutagePause is the longest pause between two tries while the database fails.
const longestOutagePause = time.Second

// An outage is the time in which the waiters for a key get nothing but errors of the database.
// Nil says that there is none. The values are immutable: the first waiter in the queue stores
// another one with each error, and those behind it read it when their waits end.
type outage struct {
	began time.Time
	last  error
	pause time.Duration // before the next try
}

// after returns the outage after one more error. The pause before the next try is twice as long
// each time, from idle to longestOutagePause.
func (o *outage) after(err error, idle time.Duration) *outage {
	if o == nil {
		return &outage{began: time.Now(), last: err, pause: idle}
	}
	return &outage{began: o.began, last: err, pause: max(idle, min(2*o.pause, longestOutagePause))}
}

// sleep waits before the next try. Waiters for different keys do not try in step. sleep returns
// false if ctx ended first.
func (o *outage) sleep(ctx context.Context) bool {
	return bounded.Sleep(ctx, o.pause-jitter.N(o.pause/5+1))
}

// ended returns the error of a wait that ctx, the caller's, or a limit has ended in an outage.
func (o *outage) ended(ctx context.Context) error {
	err := fmt.Errorf("%w (for %v)", o.last, time.Since(o.began).Round(time.Millisecond))
	if cause := bounded.Ended(ctx); cause != nil {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// outlasts reports whether w tries again after err: an error of the database that may pass.
// Without a lock table no waiting helps.
func (w *waiter) outlasts(err error) bool {
	return w.locks.waitThroughOutages && !w.once && errors.Is(err, failure.ErrDatabase) && !errors.Is(err, failure.ErrSchema)
}

// sitOut waits before the next try while the database fails. It returns false if ctx ended.
func (w *waiter) sitOut(ctx context.Context, err error) bool {
	h := w.hold
	w.leaveTurn(ctx)
	w.ticket.unordered = false // there may be turns again
	outage := h.locals[0].outage.Load().after(err, w.locks.idle)
	w.noteOutage(outage)
	w.noteWait(ctx)
	if !outage.sleep(ctx) {
		return false
	}
	w.replaceHolder() // the row of the last attempt may still be deleted
	return true
}

// noteOutage tells those who queue behind w of an outage, or, if o is nil, of its end.
func (w *waiter) noteOutage(o *outage) {
	for _, l := range w.hold.locals {
		if l.outage.Load() != o && l.mutex.Owner() == w.hold {
			l.outage.Store(o)
		}
	}
}

// leaveOutage returns the outage that w, which did not get the lock, has waited in, or nil. It is
// forgotten with the last waiter.
func (w *waiter) leaveOutage() (met *outage) {
	for _, l := range w.hold.locals {
		o := l.outage.Load()
		if o == nil {
			continue
		}
		met = o
		if l.mutex.Owner() == w.hold && l.mutex.Waiters() == 0 {
			l.outage.Store(nil)
		}
	}
	return met
}
