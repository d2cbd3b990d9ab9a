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
	// cleanUpTimeout bounds the deletion of a row that a caller may have left behind.
	cleanUpTimeout = time.Second
	// lateStatement is how long after its caller has left a statement may write a row, as far as that is reckoned
	// with: as long as Oracle's MySQL has it wait for a row that is pinned, and a bit.
	lateStatement = time.Minute
)

// CleanUp deletes the row of a claim whose holder will not be used again, whatever has become of ctx. If it cannot,
// or if there is no row yet (the statement that writes it may come late), it adds the claim to the leftovers. So it
// does if ctx has ended and the deletion takes longer than a moment: see [Table.ReleaseAside]. TTL is how long the
// row may last.
func (t *Table) CleanUp(ctx context.Context, c Claim) {
	began := time.Now()
	switch o := t.releaseAside(ctx, c, min(c.TTL, cleanUpTimeout)); {
	case o.Err != nil:
		t.leftovers.addPresent(c, began.Add(c.TTL))
	case !o.Value:
		t.leftovers.addAbsent(c, time.Now().Add(min(c.TTL, lateStatement)))
	}
}

// ReleaseAside is [Table.Release] within limit, whatever becomes of ctx. The caller waits for it until ctx has ended,
// and a moment longer. Then it gets an error, and the release goes on: WaitInFlight waits for it.
func (t *Table) ReleaseAside(ctx context.Context, c Claim, limit time.Duration) (bool, error) {
	o := t.releaseAside(ctx, c, limit)
	return o.Err == nil && (o.Value || o.Unknown), t.errors.explain(ctx, releasing.op, o.Err)
}

func (t *Table) releaseAside(ctx context.Context, c Claim, limit time.Duration) batch.Outcome[bool] {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	t.inFlight.add()
	o, err := bounded.Do(ctx, bounded.Grace, func() (batch.Outcome[bool], error) {
		defer t.inFlight.done()
		defer cancel()
		o := t.release(limited, c)
		return o, o.Err
	}, nil)
	o.Err = err
	return o
}

// AddLeftover has the row of a claim, which could not be deleted just now, deleted before this client's next
// acquisition of the key. TTL is how long the row may last.
func (t *Table) AddLeftover(c Claim) { t.leftovers.addPresent(c, time.Now().Add(c.TTL)) }

// HasLeftover reports whether a row of a claim may exist although it has no holder. Then only an attempt to acquire
// can find out whether the lock is free.
func (t *Table) HasLeftover(c Claim) bool {
	for i := range c.count() {
		if t.leftovers.has(c.lockKeyAt(i)) {
			return true
		}
	}
	return false
}

// WaitInFlight waits until it is known what became of acquisitions whose callers have left, and their rows are
// deleted. It returns the cause of ctx if that ends first.
func (t *Table) WaitInFlight(ctx context.Context) error { return t.inFlight.wait(ctx) }

// DeleteLeftovers deletes the rows of all leftover claims. A row that is pinned does not keep it from the others; a
// database that does not answer does.
func (t *Table) DeleteLeftovers(ctx context.Context) (err error) {
	t.deleteLeftovers(ctx, t.leftovers.keys(), func(lockKey string, failed error) (goOn bool) {
		var e *Error
		if errors.As(failed, &e) { // here the caller does not know which key it is
			err = errors.Join(err, &Error{e.Op + " of LOCK_KEY " + lockKey, e.Kind, e.Err})
		}
		return Is(failed, PinnedRow)
	})
	return err
}

// deleteLeftoversOf deletes the rows of the leftover claims of c's keys. On an error, left is the key of the row that
// it is about.
func (t *Table) deleteLeftoversOf(ctx context.Context, c Claim) (left string, err error) {
	if !t.HasLeftover(c) {
		return "", nil
	}
	t.deleteLeftovers(ctx, c.lockKeys(), func(lockKey string, failed error) (goOn bool) {
		left, err = lockKey, failed
		return false
	})
	return left, err
}

// deleteLeftovers deletes the rows of the leftover claims of keys: several by one statement, and those that it finds
// pinned one by one. onError is called with an error and the key of the row that it is about, and reports whether to
// go on.
func (t *Table) deleteLeftovers(ctx context.Context, lockKeys []string, onError func(lockKey string, err error) (goOn bool)) {
	claims := t.leftovers.take(lockKeys)
	for i, some := range slices.Collect(slices.Chunk(claims, MaxRenewals)) {
		left, err := t.deleteTogether(ctx, some)
		if err != nil {
			t.leftovers.putBack(claims[i*MaxRenewals:])
			onError(some[0].LockKey, err)
			return
		}
		for j, one := range left {
			o := t.release(ctx, one.Claim)
			if o.Err == nil {
				continue
			}
			t.leftovers.putBack(left[j : j+1])
			if !onError(one.LockKey, o.Err) {
				t.leftovers.putBack(slices.Concat(left[j+1:], claims[min((i+1)*MaxRenewals, len(claims)):]))
				return
			}
		}
	}
}

// deleteTogether deletes the rows of several claims that are not pinned by one statement, and returns the claims
// whose rows are left. It leaves a single one to a batch.
func (t *Table) deleteTogether(ctx context.Context, some []leftoverClaim) (left []leftoverClaim, err error) {
	if len(some) == 1 {
		return some, nil
	}
	claims := make([]Claim, len(some))
	for i, one := range some {
		claims[i] = one.Claim
	}
	there, err := callAlone(ctx, t, releasing, 0, func(ctx context.Context) ([]Claim, error) {
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

// cleanUpLate deletes a row that was acquired for a caller that has left. If it cannot, it adds the claim to the
// leftovers: the caller has done so, too, but the row may have come after that was forgotten.
func (t *Table) cleanUpLate(c Claim, got batch.Outcome[Result]) {
	defer t.inFlight.done()
	if !got.Value.Acquired && !got.Unknown {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpTimeout)
	defer cancel()
	// Batched, because after a pause of the database there may be many.
	if o := t.releases.do(ctx, c); o.Err != nil {
		t.AddLeftover(c)
	}
}

// leftovers remember, by LOCK_KEY, the claims whose rows may exist although they have no holder: those of
// acquisitions and releases with an unknown outcome. Until its time-to-live ends, such a row keeps out all callers,
// those of its own client too. So it is deleted before that client's next acquisition of the key.
//
// The next acquisition never uses the holder of a leftover claim again: a deletion of its row may still be on its
// way.
type leftovers struct {
	// present are those whose rows may be there: the deletion failed. They are remembered for as long as the row
	// lasts.
	present expiring.Map[string, []leftoverHolder]
	// absent are those whose rows were not there, but may be written yet.
	absent expiring.Map[string, []leftoverHolder]
}

type leftoverHolder struct {
	holder string
	until  time.Time // when it is forgotten
}

// A leftoverClaim is a claim of one row that was taken.
type leftoverClaim struct {
	Claim

	until time.Time
}

// addPresent adds a claim whose row may be there until then.
func (l *leftovers) addPresent(c Claim, until time.Time) { addRows(&l.present, c, until) }

// addAbsent adds a claim whose row may be written until then.
func (l *leftovers) addAbsent(c Claim, until time.Time) { addRows(&l.absent, c, until) }

// has reports whether there are claims of a key.
func (l *leftovers) has(lockKey string) bool {
	_, present := l.present.Get(lockKey)
	_, absent := l.absent.Get(lockKey)
	return present || absent
}

// keys are the LOCK_KEYs of all claims.
func (l *leftovers) keys() []string { return append(l.present.Keys(), l.absent.Keys()...) }

// take removes and returns the claims of keys.
func (l *leftovers) take(lockKeys []string) (claims []leftoverClaim) {
	for _, lockKey := range lockKeys {
		present, _ := l.present.Take(lockKey)
		absent, _ := l.absent.Take(lockKey)
		for _, h := range withoutForgotten(append(present, absent...)) {
			claims = append(claims, leftoverClaim{Claim{LockKey: lockKey, Holder: h.holder}, h.until})
		}
	}
	return claims
}

// putBack adds claims that were taken, and whose rows may be there.
func (l *leftovers) putBack(claims []leftoverClaim) {
	for _, c := range claims {
		add(&l.present, c.LockKey, leftoverHolder{c.Holder, c.until})
	}
}

func addRows(m *expiring.Map[string, []leftoverHolder], c Claim, until time.Time) {
	for i := range c.count() {
		add(m, c.lockKeyAt(i), leftoverHolder{c.Holder, until})
	}
}

func add(m *expiring.Map[string, []leftoverHolder], lockKey string, h leftoverHolder) {
	m.Put(lockKey, h.until, func(holders []leftoverHolder) []leftoverHolder {
		return append(withoutForgotten(holders), h)
	})
}

func withoutForgotten(holders []leftoverHolder) []leftoverHolder {
	now := time.Now()
	return slices.DeleteFunc(holders, func(h leftoverHolder) bool { return !now.Before(h.until) })
}

// inFlight counts the acquisitions under way whose callers have gone. If they succeed after all, their rows are
// deleted; a process that ends before would leave them. Statements that trim are counted too: no caller waits for
// them.
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
