package locktable

import (
	"context"
	"errors"
	"time"
)

const (
	// abandonTimeout bounds how long a caller whose context has ended waits for the row
	// that it may have left behind to be deleted.
	abandonTimeout = time.Second
	// lateStatement is how long after its caller has left a statement may write a row, as
	// far as that is reckoned with: as long as Oracle's MySQL has it wait for a row that is
	// pinned, and a bit.
	lateStatement = time.Minute
)

// Abandon deletes the row of a claim whose holder will not be used again, whatever has become
// of ctx. If it cannot, or if there is no row yet (the statement that writes it may come
// late), it marks the claim as unsettled. TTL is how long the row may last.
func (t *Table) Abandon(ctx context.Context, c Claim) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(c.TTL, abandonTimeout))
	defer cancel()
	switch got, err := t.release(ctx, c); {
	case err != nil:
		t.unsettled.addPresent(c, began.Add(c.TTL))
	case !got.value:
		t.unsettled.addAbsent(c, time.Now().Add(min(c.TTL, lateStatement)))
	}
}

// MarkUnsettled has the row of a claim, which could not be deleted just now, deleted before
// this client's next acquisition of the key. TTL is how long the row may last.
func (t *Table) MarkUnsettled(c Claim) { t.unsettled.addPresent(c, time.Now().Add(c.TTL)) }

// IsUnsettled reports whether a row of a claim may exist although it has no holder. Then only an
// attempt to acquire can find out whether the lock is free.
func (t *Table) IsUnsettled(c Claim) bool {
	for i := range c.count() {
		lockKey := c.lockKeyAt(i)
		if t.unsettled.has(lockKey) {
			return true
		}
	}
	return false
}

// Settle waits until it is known what became of acquisitions whose callers have left, and
// their rows are deleted. It returns the cause of ctx if that ends first.
func (t *Table) Settle(ctx context.Context) error { return t.orphans.wait(ctx) }

// DeleteUnsettled deletes the rows of all unsettled claims. A row that is pinned does not keep
// it from the others; a database that does not answer does.
func (t *Table) DeleteUnsettled(ctx context.Context) (err error) {
	for _, lockKey := range t.unsettled.keys() {
		failed := t.deleteUnsettled(ctx, lockKey)
		var e *Error
		if errors.As(failed, &e) { // here the caller does not know which key it is
			err = errors.Join(err, &Error{e.Op + " of LOCK_KEY " + lockKey, e.Kind, e.Err})
		}
		if failed != nil && !Is(failed, PinnedRow) {
			break
		}
	}
	return err
}

// deleteUnsettled deletes the rows of the unsettled claims of a key.
func (t *Table) deleteUnsettled(ctx context.Context, lockKey string) error {
	holders := t.unsettled.take(lockKey)
	for i, h := range holders {
		if _, err := t.release(ctx, Claim{LockKey: lockKey, Holder: h.holder}); err != nil {
			t.unsettled.putBack(lockKey, holders[i:])
			return err
		}
	}
	return nil
}

// discard deletes a row that was acquired for an orphan, whose caller has left. If it cannot, it
// marks the claim as unsettled: the caller has done so, too, but the row may have come after that
// was forgotten.
func (t *Table) discard(c Claim, got effect[Result]) {
	defer t.orphans.done()
	if !got.value.Acquired && !got.unknown {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), abandonTimeout)
	defer cancel()
	// Batched, because after a pause of the database there may be many.
	if _, err := t.releases.do(ctx, c); err != nil {
		t.MarkUnsettled(c)
	}
}
