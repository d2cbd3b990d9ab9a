package engine

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/observe"
)

// A releaseContext is the context of a release. It lasts as long as the hold, and has the
// values of the context that the caller gave to Unlock.
type releaseContext struct {
	hold   *hold
	caller context.Context // the context that the caller gave to Unlock
	by     time.Time       // until when the row may be deleted (see [Use.Unlock]), or zero
}

func (c *releaseContext) Deadline() (time.Time, bool) { return c.hold.deadline(), true }
func (c *releaseContext) Value(key any) any           { return c.caller.Value(key) }

func (c *releaseContext) Done() <-chan struct{} {
	h := c.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.ended = make(chan struct{})
		if h.state >= ended {
			close(h.ended)
		}
	}
	return h.ended
}

func (c *releaseContext) Err() error {
	h := c.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state >= ended {
		return context.DeadlineExceeded
	}
	return nil
}

// Unlock gives the lease back. Only the first call does anything; later ones return what that has returned.
//
// If by is not zero, the caller has waited in vain, or does not get the lease: Unlock waits until ctx ends, and a moment
// longer, and the row may be deleted until by, in the background. A row that could not be deleted is left to the next
// acquisition.
func (u *Use) Unlock(ctx context.Context, by time.Time) error {
	if u == nil || u.hold == nil {
		return errNoLease()
	}
	u.unlocking.Lock()
	defer u.unlocking.Unlock()
	if u.unlocked.Swap(true) {
		return u.result
	}
	u.releasing = releaseContext{u.hold, ctx, by}
	u.result = u.hold.unlock(u) //nolint:contextcheck // it is made from ctx
	u.cancel(nil)
	return u.result
}

// unlock takes back one use, and releases the row with the last: it hands it over to a
// local waiter, keeps it for the minimum hold, or deletes it. It has the time that the lease has
// left: after that the row is about to expire anyway.
func (h *hold) unlock(u *Use) error {
	ctx := &u.releasing
	if err := h.alive(); err != nil {
		return err
	}
	if last, err := h.leave(u); !last {
		return err
	}
	if h.config.handOff && ctx.by.IsZero() && h.mayBeHandedOver() && h.handOver(ctx) {
		return nil
	}
	released, err := h.releaseRow(ctx)
	h.noteStreaks()
	switch {
	case err != nil:
		err = failure.AsDatabase(err) // it was cut short by the end of the lease, not of the caller's context
		h.finish(observe.EndUnlocked, err)
		if closed := h.lost(); errors.Is(closed, failure.ErrClosed) {
			return closed // Close came meanwhile, and releases the row
		}
		return err
	case !released:
		h.finish(observe.EndTaken, nil)
		return h.lost()
	default:
		h.finish(observe.EndUnlocked, nil)
		return nil
	}
}

// noteStreaks notes that the callers of this process have had the lock until now, if others wait for it, or may: a caller
// that has had it for long may ask for it again at once.
func (h *hold) noteStreaks() {
	for _, e := range h.entries {
		if h.minHold > 0 {
			e.rivals.expectOwn()
		}
		if h.inTurns || e.mutex.Waiters() > 0 || time.Since(h.term.since) >= rivalStreak || e.rivals.seen.Load() != nil && e.rivals.competed(h.term.since) {
			e.streak.note(h.term.since)
		}
	}
}

// releaseRow deletes the row, or keeps it for the rest of the minimum hold.
func (h *hold) releaseRow(ctx *releaseContext) (released bool, err error) {
	if rest := h.minHoldLeft(); rest > 0 {
		released, err = h.config.table.Keep(ctx, h.claim(), max(rest, time.Millisecond))
		if released && rest >= locktable.NamedAfter {
			h.config.onKept(ctx, h)
		}
		return released, failure.Of(err, h.key)
	}
	if ctx.by.IsZero() {
		released, err = h.config.table.Release(ctx, h.claim())
	} else { // the caller does not wait for it
		left := min(time.Until(ctx.by), time.Until(h.deadline()))
		released, err = h.config.table.ReleaseAside(ctx.caller, h.claim(), left)
	}
	if err != nil {
		h.leaveRow()
		err = failure.Of(err, h.key)
	}
	return released, err
}

// minHoldLeft returns how long the row still has to stay; negative or 0 means no longer.
func (h *hold) minHoldLeft() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.minHold == 0 || h.granted.IsZero() {
		return 0
	}
	return time.Until(h.granted.Add(h.minHold))
}

// minHoldEnd returns until when the row has to stay.
func (h *hold) minHoldEnd() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.granted.Add(h.minHold)
}

// handOver gives the row to the next caller of this process that waits for it. It needs
// no statement as long as enough of the lease is left. It returns false, having done
// nothing, if the row is to be released.
func (h *hold) handOver(ctx *releaseContext) bool {
	given := h.currentTerm()
	if time.Until(given.end) < h.ttl/2 {
		sent := time.Now()
		limited, cancel := context.WithDeadline(context.WithoutCancel(ctx.caller), given.end)
		defer cancel()
		renewed, err := h.config.table.Renew(limited, h.claim(), locktable.PinnedTimeout, nil)
		if err != nil || !renewed {
			return false
		}
		given.end = leaseEnd(sent, h.ttl)
	}
	passed := h.entries[0].mutex.Pass(h, func(next *hold) bool {
		// The users of h are notified before the next holder is.
		if next.isJoint() || next.fair || next.ttl != h.ttl || !h.endUse(observe.EndHandedOn) {
			return false
		}
		next.take(given)
		return true
	})
	if passed {
		h.config.onEnd(h)
		if h.observed != nil {
			h.reportEnd(observe.EndHandedOn, nil)
		}
	}
	return passed
}

// mayBeHandedOver reports whether the row may be handed over to a local waiter, if the registry hands over at all.
func (h *hold) mayBeHandedOver() bool {
	h.mu.Lock()
	bound := h.guarded || !h.rowEndMax.IsZero()
	h.mu.Unlock()
	isOurs := !h.fair && !h.isJoint()
	tooLong := time.Since(h.term.since) >= longestStreak(h.config.idle, true) || h.term.passed >= locktable.TokensPerAcquisition-1
	return isOurs && !tooLong && !bound && h.minHoldLeft() <= 0 && h.entries[0].mutex.Waiters() > 0
}

// take takes over the row of another hold. It is called while h waits.
func (h *hold) take(given term) {
	given.passed++
	if given.token != 0 {
		given.token++
	}
	h.term = given
	h.acquired = time.Now()
}

// wasHandedOver reports whether h got its row from another hold, which may have ended
// since: see dropIfOver.
func (h *hold) wasHandedOver() bool { return h.term.passed > 0 }

// dropIfOver has h, which was handed over a row, wait like any other if that has expired.
func (h *hold) dropIfOver() {
	if !time.Now().Before(h.term.end) {
		h.term = term{holder: h.config.table.NewHolder()}
	}
}
