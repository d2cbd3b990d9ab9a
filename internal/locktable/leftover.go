package locktable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/expiring"
)

// leftovers are the claims whose rows may exist although they have no holder, with their times-to-live: those of
// acquisitions and releases with an unknown outcome. Until its time-to-live ends, such a row keeps out all callers,
// those of its own client too. A claim is one of them until its row was deleted, or would have expired.
//
// Nothing uses the holder of a leftover claim again: a deletion of its row may still be on its way. So a row that
// carries it can be deleted at any time, by whoever meets it.
type leftovers = expiring.Map[rowID, time.Duration]

// cleanUpTimeout bounds the deletion of a row that a caller may have left behind.
const cleanUpTimeout = time.Second

// AddLeftover adds the row of a claim, which could not be deleted just now, to the leftovers. TTL is how long the row
// may last.
func (t *Table) AddLeftover(c Claim) {
	for _, one := range c.each() {
		t.leftovers.Put(one.id(), time.Now().Add(c.TTL), func(ttl time.Duration) time.Duration { return max(ttl, c.TTL) })
	}
}

// IsLeftover reports whether a row that was read has no holder: it is a leftover of this client. An attempt to acquire
// deletes it.
func (t *Table) IsLeftover(row Row) bool {
	_, ok := t.leftovers.Get(rowID{row.LockKey, row.Holder})
	return ok
}

// HasLeftovers reports whether there may be anything for [Table.DeleteLeftovers] to look for.
func (t *Table) HasLeftovers() bool { return t.leftovers.Len() > 0 }

// discard deletes the row of a leftover claim. All rows of leftovers are deleted by it, or by discardAll.
func (t *Table) discard(ctx context.Context, c Claim) batch.Outcome[bool] {
	o := t.release(ctx, c)
	for _, one := range c.each() {
		t.noteDiscarded(one, o.Value, o.Err)
	}
	return o
}

// noteDiscarded notes what a deletion has found out. A row that was not there may be written yet.
func (t *Table) noteDiscarded(c Claim, deleted bool, err error) {
	switch {
	case err == nil && deleted:
		t.leftovers.Take(c.id())
	case Is(err, NoAnswer), Is(err, Ended), Is(err, PinnedRow):
		// The statement that writes the row may wait for the same, and the row lasts from then on.
		if ttl, ok := t.leftovers.Get(c.id()); ok {
			c.TTL = ttl
			t.AddLeftover(c)
		}
	}
}

// discardAll deletes the rows of leftover claims that are there: several by one statement, and those that it finds
// pinned one by one. A row that is pinned does not keep it from the others; another error does.
func (t *Table) discardAll(ctx context.Context, claims []Claim) (pinned error) {
	for len(claims) > 0 {
		some := claims[:min(len(claims), MaxRenewals)]
		left, err := t.discardUnpinned(ctx, some)
		err = ofRows(err, some)
		for i := 0; i < len(left) && err == nil; i++ {
			one := left[i : i+1]
			if err = ofRows(t.discard(ctx, one[0]).Err, one); Is(err, PinnedRow) {
				pinned, err = errors.Join(pinned, err), nil
			}
		}
		if err != nil {
			for _, one := range claims {
				t.noteDiscarded(one, false, err)
			}
			return errors.Join(err, pinned)
		}
		claims = claims[len(some):]
	}
	return pinned
}

// ofRows adds to an error whose rows it is about: the caller does not know which they are.
func ofRows(err error, claims []Claim) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	op := e.Op + " of LOCK_KEY " + claims[0].LockKey
	if more := len(claims) - 1; more > 0 {
		op += fmt.Sprintf(" and %d more", more)
	}
	return e.as(op)
}

// discardUnpinned deletes the rows of several leftover claims that are not pinned by one statement, and returns the
// claims whose rows are left. It leaves a single one to a batch.
func (t *Table) discardUnpinned(ctx context.Context, some []Claim) (left []Claim, err error) {
	if len(some) == 1 {
		return some, nil
	}
	type answer struct {
		gone map[rowID]bool
		left []Claim
	}
	a, err := callAlone(ctx, t, discarding, 0, func(ctx context.Context) (a answer, err error) {
		if a.gone, _, err = t.deleteMany(ctx, together(some)); err == nil {
			a.left, err = t.left(ctx, some, a.gone)
		}
		return a, err
	}, nil)
	for _, one := range some {
		t.noteDiscarded(one, a.gone[one.id()], err)
	}
	return a.left, err
}

// DeleteLeftovers deletes the rows of the leftover claims that are there. The others may be written yet, so it keeps
// them in mind.
func (t *Table) DeleteLeftovers(ctx context.Context) error {
	return t.discardAll(ctx, t.leftoversOf(nil))
}

// deleteLeftoversOf deletes the rows of the leftover claims of c's keys.
func (t *Table) deleteLeftoversOf(ctx context.Context, c Claim) error {
	return t.discardAll(ctx, t.leftoversOf(c.lockKeys()))
}

// leftoversOf returns the leftover claims of some keys, or of all if lockKeys is nil.
func (t *Table) leftoversOf(lockKeys []string) (claims []Claim) {
	for _, id := range t.leftovers.Keys() {
		if lockKeys == nil || slices.Contains(lockKeys, id.lockKey) {
			claims = append(claims, Claim{LockKey: id.lockKey, Holder: id.holder})
		}
	}
	return claims
}

// CleanUp deletes the row of a claim whose holder will not be used again, whatever has become of ctx. If it cannot,
// or if there is no row yet (the statement that writes it may come late), the claim is a leftover. The caller waits as
// for [Table.ReleaseAside]. TTL is how long the row may last.
func (t *Table) CleanUp(ctx context.Context, c Claim) { t.cleanUp(ctx, c, bounded.Grace) }

// cleanUp is CleanUp for a caller that waits for so long after ctx has ended.
func (t *Table) cleanUp(ctx context.Context, c Claim, grace time.Duration) {
	t.AddLeftover(c)
	_ = t.aside(ctx, c, min(c.TTL, cleanUpTimeout), grace, t.discard)
}

// ReleaseAside is [Table.Release] within limit, whatever becomes of ctx. The caller waits for it until ctx has ended,
// and a moment longer. Then it gets an error, and the release goes on: WaitInFlight waits for it.
func (t *Table) ReleaseAside(ctx context.Context, c Claim, limit time.Duration) (bool, error) {
	o := t.aside(ctx, c, limit, bounded.Grace, t.release)
	return o.Err == nil && (o.Value || o.Unknown), t.errors.explain(ctx, releasing.op, o.Err)
}

// aside runs a deletion within limit, and waits for it until ctx has ended and a grace period longer.
func (t *Table) aside(ctx context.Context, c Claim, limit, grace time.Duration, deletion func(context.Context, Claim) batch.Outcome[bool]) batch.Outcome[bool] {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	t.inFlight.add()
	o, err := bounded.Do(ctx, grace, func() (batch.Outcome[bool], error) {
		defer t.inFlight.done()
		defer cancel()
		o := deletion(limited, c)
		return o, o.Err
	}, nil)
	o.Err = err
	return o
}

// cleanUpLate cleans up after an acquisition whose caller has left, when its outcome is known. The caller has
// done so, too, but the row may have come after that. A definite answer ends the doubt, unless the statement was
// sent before: an earlier one may still be done.
func (t *Table) cleanUpLate(c Claim, got batch.Outcome[Result]) {
	defer t.inFlight.done()
	if got.Value.Acquired || got.Unknown {
		t.AddLeftover(c)
		ctx, cancel := context.WithTimeout(context.Background(), cleanUpTimeout)
		defer cancel()
		if t.discard(ctx, c).Err != nil {
			return
		}
	}
	if !got.Unknown && !got.Resent && !c.resent {
		for _, one := range c.each() {
			t.leftovers.Take(one.id())
		}
	}
}

// releaseLate notes the outcome of a release whose caller has left.
func (t *Table) releaseLate(c Claim, got batch.Outcome[bool]) {
	defer t.inFlight.done()
	for _, one := range c.each() {
		t.noteDiscarded(one, got.Value, got.Err)
	}
}

// WaitInFlight waits until it is known what became of acquisitions and releases whose callers have left, and the
// rows of the acquisitions are deleted. It returns the cause of ctx if that ends first.
func (t *Table) WaitInFlight(ctx context.Context) error { return t.inFlight.wait(ctx) }

// inFlight counts the acquisitions and releases under way whose callers have gone. If an acquisition succeeds after
// all, its row is deleted; a process that ends before would leave it. Statements that trim are counted too: no caller
// waits for them.
type inFlight struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when there are none, if a caller waits for that
}

func (f *inFlight) add() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
}

// done ends one: its outcome is known, and its row is deleted if that could be done.
func (f *inFlight) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n--; f.n == 0 && f.none != nil {
		close(f.none)
		f.none = nil
	}
}

// wait waits until there are none, or returns the error of ctx.
func (f *inFlight) wait(ctx context.Context) error {
	f.mu.Lock()
	if f.n == 0 {
		f.mu.Unlock()
		return nil
	}
	if f.none == nil {
		f.none = make(chan struct{})
	}
	none := f.none
	f.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
