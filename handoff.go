package sqllock

import (
	"context"
	"time"
)

// streakIdles is for how many IdleBetweenTries a row is handed on within this process
// before it is released, so that other processes get their turn.
const streakIdles = 10

// An inheritance is a row that one hold of this process gives to the next.
type inheritance struct {
	holder string
	token  int64     // the fencing token
	passed int       // how often it was handed on
	since  time.Time // when it was acquired
	end    time.Time // when the lease ends
}

// handOn gives the row to the next caller of this process who waits for it, without
// the database as long as enough of the lease is left. It returns false, having done
// nothing, if the row is to be released.
func (h *hold) handOn(ctx context.Context) bool {
	if !h.mayBeHandedOn() {
		return false
	}
	given := inheritance{h.holder, h.token, h.passed, h.since, h.deadline()}
	if time.Until(given.end) < h.ttl/2 {
		sent := time.Now()
		bounded, cancel := context.WithDeadline(context.WithoutCancel(ctx), given.end)
		defer cancel()
		renewed, err := h.registry.repository.renew(bounded, h.params(), longestPin, nil)
		if err != nil || !renewed {
			return false
		}
		given.end = leaseEnd(sent, h.ttl)
	}
	passed := h.entry.mutex.Pass(h, func(next *hold) bool {
		// The holders are told before the next one knows.
		if next.ttl != h.ttl || !h.conclude(nil) {
			return false
		}
		next.inherit(given)
		return true
	})
	if passed {
		h.registry.dismiss(h)
	}
	return passed
}

// mayBeHandedOn also sees to it that this process steps back if its turn is over.
func (h *hold) mayBeHandedOn() bool {
	h.mu.Lock()
	kept := h.guarded || h.atLeast > 0 || !h.longest.IsZero()
	h.mu.Unlock()
	if !h.registry.handOff || kept || h.passed == handOffs-1 || h.entry.mutex.Waiters() == 0 {
		return false
	}
	idle := h.registry.idle
	if time.Since(h.since) < streakIdles*idle {
		return true
	}
	// Whoever polls looks within IdleBetweenTries, and then needs a moment to try.
	until := time.Now().Add(idle + idle/2)
	h.entry.stepBack.Store(&until)
	return false
}

// inherit takes over a row. It is called while h waits.
func (h *hold) inherit(given inheritance) {
	given.passed++
	if given.token != 0 {
		given.token++
	}
	h.holder, h.token, h.passed, h.since = given.holder, given.token, given.passed, given.since
	h.inherited = given.end
	h.sent = time.Now()
}

// disinherit makes h contend like anybody else if what it inherited has ended meanwhile.
func (h *hold) disinherit() {
	if !h.inherited.IsZero() && !time.Now().Before(h.inherited) {
		h.holder, h.token, h.passed = h.registry.repository.NewHolder(), 0, 0
		h.inherited = time.Time{}
	}
}

// waitForOthers lets other processes in if this one has just had its turn.
func (e *entry) waitForOthers(ctx context.Context) bool {
	until := e.stepBack.Load()
	if until == nil {
		return true
	}
	defer e.stepBack.CompareAndSwap(until, nil)
	return sleep(ctx, max(0, time.Until(*until)))
}
