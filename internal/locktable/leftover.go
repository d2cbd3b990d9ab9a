package locktable

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/expiring"
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
	switch o := t.releaseAside(ctx, c, min(c.TTL, abandonTimeout)); {
	case o.Err != nil:
		t.unsettled.addPresent(c, began.Add(c.TTL))
	case !o.Value:
		t.unsettled.addAbsent(c, time.Now().Add(min(c.TTL, lateStatement)))
	}
}

// ReleaseAside is [Table.Release] within limit, whatever becomes of ctx. The caller waits for it until
// ctx has ended, and a moment longer. Then it gets an error, and the release goes on: Settle waits for it.
func (t *Table) ReleaseAside(ctx context.Context, c Claim, limit time.Duration) (bool, error) {
	o := t.releaseAside(ctx, c, limit)
	return o.Err == nil && (o.Value || o.Unknown), t.errors.explain(ctx, releasing.op, o.Err)
}

func (t *Table) releaseAside(ctx context.Context, c Claim, limit time.Duration) batch.Outcome[bool] {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	t.orphans.add()
	o, err := bounded.Do(ctx, bounded.Grace, func() (batch.Outcome[bool], error) {
		defer t.orphans.done()
		defer cancel()
		o := t.release(limited, c)
		return o, o.Err
	}, nil)
	o.Err = err
	return o
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
			o := t.release(ctx, one.Claim)
			if o.Err == nil {
				continue
			}
			t.unsettled.putBack(left[j : j+1])
			if !onError(one.LockKey, o.Err) {
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
		gone, _, err := t.deleteMany(ctx, together(claims))
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
func (t *Table) discard(c Claim, got batch.Outcome[Result]) {
	defer t.orphans.done()
	if !got.Value.Acquired && !got.Unknown {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), abandonTimeout)
	defer cancel()
	// Batched, because after a pause of the database there may be many.
	if o := t.releases.do(ctx, c); o.Err != nil {
		t.MarkUnsettled(c)
	}
}

// unsettled remembers, by LOCK_KEY, the claims whose rows may exist although they have no
// holder: those of acquisitions and releases with an unknown outcome. Until its time-to-live
// ends, such a row keeps out all callers, those of its own client too. So it is deleted before
// that client's next acquisition of the key.
//
// The next acquisition never uses the holder of an unsettled claim again: a deletion of its
// row may still be on its way.
type unsettled struct {
	// present are those whose rows may be there: the deletion failed. They are
	// remembered for as long as the row lasts.
	present expiring.Map[string, []unsettledHolder]
	// absent are those whose rows were not there, but may be written yet.
	absent expiring.Map[string, []unsettledHolder]
}

type unsettledHolder struct {
	holder string
	until  time.Time // when it is forgotten
}

// An unsettledClaim is a claim of one row that was taken.
type unsettledClaim struct {
	Claim

	until time.Time
}

// addPresent adds a claim whose row may be there until then.
func (u *unsettled) addPresent(c Claim, until time.Time) { addRows(&u.present, c, until) }

// addAbsent adds a claim whose row may be written until then.
func (u *unsettled) addAbsent(c Claim, until time.Time) { addRows(&u.absent, c, until) }

// has reports whether there are claims of a key.
func (u *unsettled) has(lockKey string) bool {
	_, present := u.present.Get(lockKey)
	_, absent := u.absent.Get(lockKey)
	return present || absent
}

// keys are the LOCK_KEYs of all claims.
func (u *unsettled) keys() []string { return append(u.present.Keys(), u.absent.Keys()...) }

// take removes and returns the claims of keys.
func (u *unsettled) take(lockKeys []string) (claims []unsettledClaim) {
	for _, lockKey := range lockKeys {
		present, _ := u.present.Take(lockKey)
		absent, _ := u.absent.Take(lockKey)
		for _, h := range withoutForgotten(append(present, absent...)) {
			claims = append(claims, unsettledClaim{Claim{LockKey: lockKey, Holder: h.holder}, h.until})
		}
	}
	return claims
}

// putBack adds claims that were taken, and whose rows may be there.
func (u *unsettled) putBack(claims []unsettledClaim) {
	for _, c := range claims {
		add(&u.present, c.LockKey, unsettledHolder{c.Holder, c.until})
	}
}

func addRows(m *expiring.Map[string, []unsettledHolder], c Claim, until time.Time) {
	for i := range c.count() {
		add(m, c.lockKeyAt(i), unsettledHolder{c.Holder, until})
	}
}

func add(m *expiring.Map[string, []unsettledHolder], lockKey string, h unsettledHolder) {
	m.Put(lockKey, h.until, func(holders []unsettledHolder) []unsettledHolder {
		return append(withoutForgotten(holders), h)
	})
}

func withoutForgotten(holders []unsettledHolder) []unsettledHolder {
	now := time.Now()
	return slices.DeleteFunc(holders, func(h unsettledHolder) bool { return !now.Before(h.until) })
}

// orphans counts the acquisitions under way whose callers have gone. If they succeed after
// all, their rows are deleted; a process that ends before would leave them. Statements that trim are
// counted too: no caller waits for them.
type orphans struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when there are none, if a caller waits for that
}

func (o *orphans) add() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n++
}

// done ends one: its outcome is known, and its row is deleted if that could be done.
func (o *orphans) done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n--; o.n == 0 && o.none != nil {
		close(o.none)
		o.none = nil
	}
}

// wait waits until there are none, or returns the error of ctx.
func (o *orphans) wait(ctx context.Context) error {
	o.mu.Lock()
	if o.n == 0 {
		o.mu.Unlock()
		return nil
	}
	if o.none == nil {
		o.none = make(chan struct{})
	}
	none := o.none
	o.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
