package engine

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
)

// silence returns an ErrDatabase if the limit of a wait has ended it, which ended says, while the database did not answer: to
// w, or to the caller of this process before it in the queue. Otherwise it returns the row as it was seen last.
//
// On a slow machine an answer may only be late, and where a row is pinned, a statement waits for it. So the row
// is read once more, which waits for none: if a row of another holder is there, the lock is taken.
func (w *waiter) silence(ctx context.Context, ended error, seen locktable.Row, began time.Time) (locktable.Row, error) {
	h := w.hold
	if !errors.Is(ended, context.DeadlineExceeded) || seen.Holder != "" && !w.isFree(seen) {
		return seen, nil
	}
	silent := max(h.unanswered(), h.locals[w.queuesAt].mutex.Owner().unanswered())
	if !failure.IsSilence(silent, time.Since(began)) {
		return seen, nil
	}
	row, err := w.locks.table.Reads.ReadSoon(ctx, h.claim())
	others := err == nil && row.Holder != "" && row.Holder != h.term.holder && !w.locks.table.Leftovers.Includes(row)
	if others && (!row.Expired() || w.locks.table.Reads.MayBeBlocked(silent)) {
		return row, nil
	}
	return seen, failure.Silent(h.key, silent)
}

// mayBePinned reports whether the row is there, for a caller with ctx whose renewal had no answer for so long: a transaction
// may have it pinned.
func (h *hold) mayBePinned(ctx context.Context, unanswered time.Duration) bool {
	claim := h.claim()
	claim.More = nil // of a joint lock a read returns only the rows of others
	row, err := h.locks.table.Reads.ReadSoon(ctx, claim)
	return err == nil && row.Holder == h.term.holder && h.locks.table.Reads.MayBeBlocked(unanswered)
}

// IsSilent reports whether the database does not answer within a moment, for a caller whose ctx has ended.
func (s *Locks) IsSilent(ctx context.Context, lockKey string) bool {
	_, err := s.table.Reads.ReadSoon(ctx, locktable.Claim{LockKey: lockKey})
	return err != nil
}

// unanswered returns for how long a caller that waits for the row has had no answer: 0 if it does not wait for one.
func (h *hold) unanswered() time.Duration {
	if h == nil {
		return 0
	}
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	if h.lease.state != stateWaiting || h.lease.sent.IsZero() {
		return 0
	}
	return time.Since(h.lease.sent)
}
