package engine

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/fair"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/names"
	"github.com/sqllock/sqllock/observe"
)

// A releaseContext is the context of a release. It lasts as long as the hold, and has the
// values of the context that the caller gave to Unlock.
type releaseContext struct {
	hold   *hold
	caller context.Context // the context that the caller gave to Unlock
	by     time.Time       // until when the row may be deleted (see [Use.Unlock]), or zero
}

func (c *releaseContext) Deadline() (time.Time, bool) { return c.hold.lease.deadline(), true }
func (c *releaseContext) Value(key any) any           { return c.caller.Value(key) }

func (c *releaseContext) Done() <-chan struct{} {
	l := &c.hold.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil {
		l.over = make(chan struct{})
		if l.state >= stateEnded {
			close(l.over)
		}
	}
	return l.over
}

func (c *releaseContext) Err() error {
	l := &c.hold.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= stateEnded {
		return context.DeadlineExceeded
	}
	return nil
}

// Unlock gives the lease back. Only the first call does anything; later ones return what that has returned.
//
// If by is not zero, the caller has waited in vain, or does not get the lease: Unlock waits until ctx ends, and a moment
// longer, and the row may be deleted until by, in the background. A row that could not be deleted is a leftover, which
// sweep.go deletes, or the next acquisition.
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
	if h.locks.handOff && ctx.by.IsZero() && h.mayBeHandedOver() && h.handOver(ctx) {
		return nil
	}
	stays := time.Until(h.lease.minHoldEnd())
	released, err := h.releaseRow(ctx, stays)
	for _, l := range h.locals {
		if stays > 0 {
			l.share.ExpectOwn()
		}
		l.share.Released(h.term.since, h.inTurns || l.mutex.Waiters() > 0)
	}
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

// releaseRow deletes the row, or keeps it for the rest of the minimum hold, if there is one.
func (h *hold) releaseRow(ctx *releaseContext, rest time.Duration) (released bool, err error) {
	if rest > 0 {
		released, err = h.locks.table.Releases.Keep(ctx, h.claim(), max(rest, time.Millisecond))
		if released && rest >= names.NamedAfter {
			h.locks.nameKept(ctx, h)
		}
		return released, failure.Of(err, h.key)
	}
	if ctx.by.IsZero() {
		busy := h.countRelease() && h.locks.closing.Err() == nil
		claim := h.claim()
		if claim.Busy = busy; busy {
			defer h.locks.tidyLater()
		}
		released, err = h.locks.table.Releases.Release(ctx, claim)
	} else { // the caller does not wait for it
		left := min(time.Until(ctx.by), time.Until(h.lease.deadline()))
		released, err = h.locks.table.Leftovers.ReleaseAside(ctx.caller, h.claim(), left)
	}
	if err != nil {
		h.leaveRow()
		err = failure.Of(err, h.key)
	}
	return released, err
}

// minHoldEnd returns until when the row has to stay. It is zero if it does not.
func (l *lease) minHoldEnd() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keep == 0 || l.granted.IsZero() {
		return time.Time{}
	}
	return l.granted.Add(l.keep)
}

// handOver gives the row to the next caller of this process that waits for it. It needs
// no statement as long as enough of the lease is left, and renews the row otherwise. It returns
// false if the row is to be released, as it is then.
func (h *hold) handOver(ctx *releaseContext) bool {
	end := h.lease.deadline()
	if time.Until(end) < h.ttl/2 {
		sent := time.Now()
		limited, cancel := context.WithDeadline(context.WithoutCancel(ctx.caller), end)
		defer cancel()
		renewed, err := h.locks.table.Renewals.Renew(limited, h.claim(), locktable.PinnedTimeout, nil)
		if err != nil || !renewed {
			return false
		}
		end = leaseEnd(sent, h.ttl)
	}
	var uses []*Use
	grant := h.locals[0].mutex.Pass(h, func(next *hold) (ended bool) {
		if next.joint || next.fair || next.ttl != h.ttl {
			return false
		}
		if uses, ended, _ = h.endLease(observe.EndHandedOn); ended {
			next.take(h.term, end)
		}
		return ended
	})
	if grant == nil {
		return false
	}
	for _, u := range uses {
		u.cancel(nil)
	}
	grant()
	h.locks.removeHold(h)
	if h.observed != nil {
		h.reportEnd(observe.EndHandedOn, nil)
	}
	return true
}

// mayBeHandedOver reports whether the row may be handed over to a local waiter, if the registry hands over at all.
func (h *hold) mayBeHandedOver() bool {
	h.lease.mu.Lock()
	bound := h.lease.guarded || !h.lease.rowEndMax.IsZero()
	h.lease.mu.Unlock()
	isOurs := !h.fair && !h.joint
	tooLong := time.Since(h.term.since) >= fair.LongestStreak(h.locks.idle, true) || h.term.passed >= locktable.TokensPerAcquisition-1
	return isOurs && !tooLong && !bound && time.Until(h.lease.minHoldEnd()) <= 0 && h.locals[0].mutex.Waiters() > 0
}

// take takes over the row of another hold, whose lease lasts until end. It is called while h waits.
func (h *hold) take(given term, end time.Time) {
	given.passed++
	if given.token != 0 {
		given.token++
	}
	h.term, h.acquired = given, time.Now()
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	h.lease.end = end
}

// A usage is how often the callers of this process have had a lock lately: an instant, since the registry was
// made. Each release moves it by usedFor, from then on at least. So it runs ahead of the clock while releases come
// more often than that.
type usage time.Duration

const (
	// usedFor is how long a release counts.
	usedFor = time.Second
	// busyAhead is how far ahead the usage of a busy key is: fifty releases at once, or two a second for a minute.
	busyAhead = 50 * usedFor
	// mostAhead limits it, so that a key is not busy any more soon after the last one.
	mostAhead = busyAhead + 10*usedFor
)

// countRelease counts a release, and reports whether there were so many lately that the row may stay: see [locktable.Claim].
func (h *hold) countRelease() bool {
	if h.joint || h.fair { // a statement of theirs cannot take a parked row
		return false
	}
	l, now := h.locals[0], usage(time.Since(h.locks.began))
	counted := min(max(usage(l.usage.Load()), now)+usage(usedFor), now+usage(mostAhead))
	l.usage.Store(int64(counted)) // of two releases at once one is counted
	return counted >= now+usage(busyAhead)
}
