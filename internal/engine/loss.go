package engine

import (
	"fmt"
	"strings"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/observe"
)

// What is said of a loss. It is noticed by [hold.endIfExpired], background.endTaken, a renewal, a guard or Unlock, which all call
// [hold.finish].

// lost returns why h was lost, or closed: an error of failure.ErrLockLost or ErrClosed. It is nil while h lasts, and after it
// was released or handed over.
func (h *hold) lost() error {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	return h.lostLocked()
}

func (h *hold) lostLocked() error {
	if h.lease.cause == nil {
		return nil
	}
	err := fmt.Errorf("%w: %q (%s)", h.lease.cause, h.key, h.term.holder)
	if text := h.lossLocked(); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// lossLocked says why a lease is lost, or is "".
func (h *hold) lossLocked() string {
	switch {
	case h.lease.why == observe.EndTaken:
		return "its row was deleted, or another process has taken it over"
	case h.lease.why != observe.EndExpired:
		return ""
	case !h.autoRenew:
		return fmt.Sprintf("its time-to-live of %v ran out, and nothing renews it", h.ttl)
	case !h.renewUntil.IsZero() && !h.lease.end.Before(h.renewUntil):
		return "MaxHold is over"
	case h.lease.failed != nil:
		// The error is not wrapped: that the lock is lost is no error of the database.
		return "it was not renewed in time: " + strings.TrimPrefix(h.lease.failed.Error(), "sqllock: ")
	default:
		return "it was not renewed in time: this process may have stood still"
	}
}

// noteFailure notes that a renewal has failed.
func (l *lease) noteFailure(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.state.isOver() {
		l.failed = err
	}
}

// notHeld is the error of a lease of key that has been unlocked.
func notHeld(key string) error {
	return fmt.Errorf("%w: %q has been unlocked", failure.ErrNotHeld, key)
}

// causeOf is the cause with which the context of a lease ends.
func causeOf(r observe.EndReason) error {
	switch {
	case r.Lost():
		return failure.ErrLockLost
	case r == observe.EndClosed:
		return failure.ErrClosed
	default:
		return nil
	}
}
