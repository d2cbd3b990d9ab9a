package locktable

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
)

const (
	// abandonTimeout bounds the deletion of a row that a caller may have left behind.
	abandonTimeout = time.Second
	// lateStatement is how long after its caller has left a statement may write a row, as
	// far as that is reckoned with: as long as Oracle's MySQL has it wait for a row that is
	// pinned, and a bit.
	lateStatement = time.Minute
)

// Abandon deletes the row of a claim whose holder will not be used again, whatever has become
// of ctx. If it cannot, or if there is no row yet (the statement that writes it may come
// late), it marks the claim as unsettled. So it does if ctx has ended and the deletion takes longer than
// a moment: see [Table.ReleaseAside]. TTL is how long the row may last.
func (t *Table) Abandon(ctx context.Context, c Claim) {
	began := time.Now()
	switch got, err := t.releaseAside(ctx, c, min(c.TTL, abandonTimeout)); {
	case err != nil:
		t.unsettled.addPresent(c, began.Add(c.TTL))
	case !got.value:
		t.unsettled.addAbsent(c, time.Now().Add(min(c.TTL, lateStatement)))
	}
}

// ReleaseAside is [Table.Release] within limit, whatever becomes of ctx. The caller waits for it until
// ctx has ended, and a moment longer. Then it gets an error, and the release goes on: Settle waits for it.
func (t *Table) ReleaseAside(ctx context.Context, c Claim, limit time.Duration) (bool, error) {
	got, err := t.releaseAside(ctx, c, limit)
	return err == nil && (got.value || got.unknown), t.errors.explain(ctx, releasing.op, err)
}

func (t *Table) releaseAside(ctx context.Context, c Claim, limit time.Duration) (effect[bool], error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	t.orphans.add()
	return bounded.Do(ctx, bounded.Grace, func() (effect[bool], error) {
		defer t.orphans.done()
		defer cancel()
		return t.release(limited, c)
	}, nil)
}

// MarkUnsettled has the row of a claim, which could not be deleted just now, deleted before
// this client's next acquisition of the key. TTL is how long the row may last.
func (t *Table) MarkUnsettled(c Claim) { t.unsettled.addPresent(c, time.Now().Add(c.TTL)) }

// IsUnsettled reports whether a row of a claim may exist although it has no holder. Then only an
// attempt to acquire can find out whether the lock is free.
func (t *Table) IsUnsettled(c Claim) bool {
	for i := range c.count() {
		if t.unsettled.has(c.lockKeyAt(i)) {
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
	t.deleteUnsettled(ctx, t.unsettled.keys(), func(lockKey string, failed error) (goOn bool) {
		var e *Error
		if errors.As(failed, &e) { // here the caller does not know which key it is
			err = errors.Join(err, &Error{e.Op + " of LOCK_KEY " + lockKey, e.Kind, e.Err})
		}
		return Is(failed, PinnedRow)
	})
	return err
}

// deleteUnsettledOf deletes the rows of the unsettled claims of c's keys. On an error, left is the key of the
// row that it is about.
func (t *Table) deleteUnsettledOf(ctx context.Context, c Claim) (left string, err error) {
	if !t.IsUnsettled(c) {
		return "", nil
	}
	t.deleteUnsettled(ctx, c.lockKeys(), func(lockKey string, failed error) (goOn bool) {
		left, err = lockKey, failed
		return false
	})
	return left, err
}

// deleteUnsettled deletes the rows of the unsettled claims of keys: several by one statement, and those that
// it finds pinned one by one. onError is called with an error and the key of the row that it is about, and
// reports whether to go on.
func (t *Table) deleteUnsettled(ctx context.Context, lockKeys []string, onError func(lockKey string, err error) (goOn bool)) {
	claims := t.unsettled.take(lockKeys)
	for i, some := range slices.Collect(slices.Chunk(claims, MaxRenewals)) {
		left, err := t.deleteTogether(ctx, some)
		if err != nil {
			t.unsettled.putBack(claims[i*MaxRenewals:])
			onError(some[0].LockKey, err)
			return
		}
		for j, one := range left {
			_, err := t.release(ctx, one.Claim)
			if err == nil {
				continue
			}
			t.unsettled.putBack(left[j : j+1])
			if !onError(one.LockKey, err) {
				t.unsettled.putBack(slices.Concat(left[j+1:], claims[min((i+1)*MaxRenewals, len(claims)):]))
				return
			}
		}
	}
}

// deleteTogether deletes the rows of several claims that are not pinned by one statement, and returns the
// claims whose rows are left. It leaves a single one to a batch.
func (t *Table) deleteTogether(ctx context.Context, some []unsettledClaim) (left []unsettledClaim, err error) {
	if len(some) == 1 {
		return some, nil
	}
	claims := make([]Claim, len(some))
	for i, one := range some {
		claims[i] = one.Claim
	}
	there, err := callAlone(ctx, t.errors, releasing, 0, func(ctx context.Context) ([]Claim, error) {
		gone, _, err := t.deleteRows(ctx, together(claims))
		if err != nil {
			return nil, err
		}
		return t.left(ctx, claims, gone)
	}, nil)
	for _, one := range some {
		if slices.ContainsFunc(there, func(c Claim) bool { return c.id() == one.id() }) {
			left = append(left, one)
		}
	}
	return left, err
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
