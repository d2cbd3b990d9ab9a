package engine

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
)

// silence returns an ErrDatabase if a wait that its limit has ended, as ended says, has found out nothing but
// that the database does not answer: w, or the caller of this process that is before it in the queue. Otherwise
// it returns the row as it was seen last.
//
// On a slow machine an answer may only be late, and where a row is pinned, a statement waits for it. So the row
// is read once more, which waits for none: if a row of another holder is there, the lock is taken.
func (w *waiter) silence(ctx context.Context, ended error, seen locktable.Row, began time.Time) (locktable.Row, error) {
	h := w.hold
	if !errors.Is(ended, context.DeadlineExceeded) || seen.Holder != "" && !w.isFree(seen) {
		return seen, nil
	}
	silent := max(h.unanswered(), h.entries[w.busy].mutex.Owner().unanswered())
	if !failure.IsSilence(silent, time.Since(began)) {
		return seen, nil
	}
	row, err := w.table.ReadSoon(ctx, h.claim())
	others := err == nil && row.Holder != "" && row.Holder != h.term.holder && !w.table.IsLeftover(row)
	if others && (!row.Expired() || w.table.MayBeBlocked(silent)) {
		return row, nil
	}
	return seen, failure.Silent(h.key, silent)
}

// IsSilent reports whether the database does not answer within a moment. A caller asks whose ctx has ended.
func (s *Locks) IsSilent(ctx context.Context, lockKey string) bool {
	_, err := s.table.ReadSoon(ctx, locktable.Claim{LockKey: lockKey})
	return err != nil
}
