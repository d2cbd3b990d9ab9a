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
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/expiring"
	"github.com/sqllock/sqllock/internal/stmt"
)

// leftovers are the claims whose rows may exist although they have no holder, with their times-to-live: those of
// acquisitions and releases with an unknown outcome. Until its time-to-live ends, such a row keeps out all callers,
// those of its own client too. A claim is one of them until its row was deleted, or would have expired.
//
// Nothing uses the holder of a leftover claim again: a deletion of its row may still be on its way. So a row that
// carries it can be deleted at any time, by whoever meets it.
type leftovers struct {
	*database

	releases *releases // deletes them
	claims   expiring.Map[stmt.RowID, time.Duration]
	inFlight inFlight
}

// cleanUpTimeout bounds the deletion of a row that a caller may have left behind.
const cleanUpTimeout = time.Second

// Add adds the row of a claim, which could not be deleted just now, to the leftovers. TTL is how long the row
// may last.
func (l *leftovers) Add(c Claim) {
	for _, one := range c.Each() {
		l.claims.Put(one.ID(), time.Now().Add(c.TTL), func(ttl time.Duration) time.Duration { return max(ttl, c.TTL) })
	}
}

// Includes reports whether a row that was read has no holder: it is a leftover of this client. An attempt to acquire
// deletes it.
func (l *leftovers) Includes(row Row) bool {
	_, ok := l.claims.Get(stmt.RowID{LockKey: row.LockKey, Holder: row.Holder})
	return ok
}

// Any reports whether there may be anything for DeleteAll to look for.
func (l *leftovers) Any() bool { return l.claims.Len() > 0 }

// discard deletes the row of a leftover claim. All rows of leftovers are deleted by it, or by discardAll.
func (l *leftovers) discard(ctx context.Context, c Claim) batch.Outcome[bool] {
	o := l.releases.release(ctx, c)
	for _, one := range c.Each() {
		l.noteDiscarded(one, o.Value, o.Err)
	}
	return o
}

// noteDiscarded notes what a deletion has found out. A row that was not there may be written yet.
func (l *leftovers) noteDiscarded(c Claim, deleted bool, err error) {
	switch {
	case err == nil && deleted:
		l.claims.Take(c.ID())
	case dbcall.Is(err, dbcall.NoAnswer), dbcall.Is(err, dbcall.Ended), dbcall.Is(err, dbcall.PinnedRow):
		// The statement that writes the row may wait for the same, and the row lasts from then on.
		if ttl, ok := l.claims.Get(c.ID()); ok {
			c.TTL = ttl
			l.Add(c)
		}
	}
}

// discardAll deletes the rows of leftover claims that are there: several by one statement, and those that it finds
// pinned one by one. A row that is pinned does not keep it from the others; another error does.
func (l *leftovers) discardAll(ctx context.Context, claims []Claim) (pinned error) {
	for len(claims) > 0 {
		some := claims[:min(len(claims), MaxRenewals)]
		left, err := l.discardUnpinned(ctx, some)
		err = ofRows(err, some)
		for i := 0; i < len(left) && err == nil; i++ {
			one := left[i : i+1]
			if err = ofRows(l.discard(ctx, one[0]).Err, one); dbcall.Is(err, dbcall.PinnedRow) {
				pinned, err = errors.Join(pinned, err), nil
			}
		}
		if err != nil {
			for _, one := range claims {
				l.noteDiscarded(one, false, err)
			}
			return errors.Join(err, pinned)
		}
		claims = claims[len(some):]
	}
	return pinned
}

// ofRows adds to an error which rows it is about: the caller does not know that.
func ofRows(err error, claims []Claim) error {
	var e *dbcall.Error
	if !errors.As(err, &e) {
		return err
	}
	op := e.Op + " of LOCK_KEY " + claims[0].LockKey
	if more := len(claims) - 1; more > 0 {
		op += fmt.Sprintf(" and %d more", more)
	}
	return e.Of(op)
}

// discardUnpinned deletes the rows of several leftover claims that are not pinned by one statement, and returns the
// claims whose rows are left. It leaves a single one to a batch.
func (l *leftovers) discardUnpinned(ctx context.Context, some []Claim) (left []Claim, err error) {
	if len(some) == 1 {
		return some, nil
	}
	type answer struct {
		gone map[stmt.RowID]bool
		left []Claim
	}
	a, err := dbcall.CallInTime(ctx, l.server, discarding, 0, func(ctx context.Context) (a answer, err error) {
		if a.gone, _, err = l.deleteMany(ctx, stmt.Together(some)); err == nil {
			a.left, err = l.left(ctx, some, a.gone)
		}
		return a, err
	}, nil)
	for _, one := range some {
		l.noteDiscarded(one, a.gone[one.ID()], err)
	}
	return a.left, err
}

// DeleteAll deletes the rows of the leftover claims that are there. The others may be written yet, so it keeps
// them in mind.
func (l *leftovers) DeleteAll(ctx context.Context) error {
	return l.discardAll(ctx, l.of(nil))
}

// deleteOf deletes the rows of the leftover claims of c's keys.
func (l *leftovers) deleteOf(ctx context.Context, c Claim) error {
	return l.discardAll(ctx, l.of(c.LockKeys()))
}

// of returns the leftover claims of some keys, or of all if lockKeys is nil.
func (l *leftovers) of(lockKeys []string) (claims []Claim) {
	for _, id := range l.claims.Keys() {
		if lockKeys == nil || slices.Contains(lockKeys, id.LockKey) {
			claims = append(claims, Claim{LockKey: id.LockKey, Holder: id.Holder})
		}
	}
	return claims
}

// CleanUp deletes the row of a claim whose holder will not be used again, whatever has become of ctx. If it cannot,
// or if there is no row yet (the statement that writes it may come late), the claim is a leftover. The caller waits as
// for [leftovers.ReleaseAside]. TTL is how long the row may last.
func (l *leftovers) CleanUp(ctx context.Context, c Claim) { l.cleanUp(ctx, c, bounded.Grace) }

// cleanUp is CleanUp for a caller that waits for so long after ctx has ended.
func (l *leftovers) cleanUp(ctx context.Context, c Claim, grace time.Duration) {
	l.Add(c)
	_ = l.aside(ctx, c, min(c.TTL, cleanUpTimeout), grace, l.discard)
}

// ReleaseAside is [releases.Release] within limit, whatever becomes of ctx. The caller waits for it until ctx has ended,
// and a moment longer. Then it gets an error, and the release goes on: WaitInFlight waits for it.
func (l *leftovers) ReleaseAside(ctx context.Context, c Claim, limit time.Duration) (bool, error) {
	o := l.aside(ctx, c, limit, bounded.Grace, l.releases.release)
	return o.Err == nil && (o.Value || o.Unknown), l.server.Explain(ctx, releasing.Op, o.Err)
}

// aside runs a deletion within limit, and waits for it until ctx has ended and a grace period longer.
func (l *leftovers) aside(ctx context.Context, c Claim, limit, grace time.Duration, deletion func(context.Context, Claim) batch.Outcome[bool]) batch.Outcome[bool] {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	done := l.inFlight.begin()
	o, err := bounded.Do(ctx, grace, func() (batch.Outcome[bool], error) {
		defer done()
		defer cancel()
		o := deletion(limited, c)
		return o, o.Err
	}, nil)
	o.Err = err
	return o
}

// leaveAcquisition notes that the caller of an acquisition leaves before its outcome is known, and returns what gets that.
func (l *leftovers) leaveAcquisition(c Claim) (onLate func(batch.Outcome[Result])) {
	done := l.inFlight.begin()
	return func(got batch.Outcome[Result]) {
		defer done()
		l.cleanUpLate(c, got)
	}
}

// cleanUpLate cleans up after an acquisition whose caller has left, when its outcome is known. The caller has
// done so, too, but the row may have come after that. A definite answer ends the doubt, unless the statement was
// sent before: an earlier one may still be done.
func (l *leftovers) cleanUpLate(c Claim, got batch.Outcome[Result]) {
	if got.Value.Acquired || got.Unknown {
		l.Add(c)
		ctx, cancel := context.WithTimeout(context.Background(), cleanUpTimeout)
		defer cancel()
		if l.discard(ctx, c).Err != nil {
			return
		}
	}
	if !got.Unknown && !got.Resent && !c.Resent {
		for _, one := range c.Each() {
			l.claims.Take(one.ID())
		}
	}
}

// leaveRelease is leaveAcquisition for a release.
func (l *leftovers) leaveRelease(c Claim) (onLate func(batch.Outcome[bool])) {
	done := l.inFlight.begin()
	return func(got batch.Outcome[bool]) {
		defer done()
		for _, one := range c.Each() {
			l.noteDiscarded(one, got.Value, got.Err)
		}
	}
}

// WaitInFlight waits until it is known what became of acquisitions and releases that have begun by now and whose callers
// have left, and the rows of the acquisitions are deleted. It returns the cause of ctx if that ends first.
func (l *leftovers) WaitInFlight(ctx context.Context) error { return l.inFlight.wait(ctx) }

// inFlight counts the acquisitions and releases under way whose callers have gone. If an acquisition succeeds after
// all, its row is deleted; a process that ends before would leave it. Releases whose callers may go, and statements that trim,
// are counted too.
//
// Several registries may use one table, so that there is always one under way. A wait is for those that have begun before it.
type inFlight struct {
	mu    sync.Mutex
	begun int // how many have begun
	open  int // how many of them have not ended
	waits []*inFlightWait
}

// An inFlightWait waits for those that had begun by then.
type inFlightWait struct {
	begun, open int
	over        chan struct{} // closed when open is 0
}

// begin counts one. done is called when its outcome is known, and its row is deleted if that could be done.
func (f *inFlight) begin() (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
	f.open++
	number := f.begun
	return func() { f.end(number) }
}

func (f *inFlight) end(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
	f.waits = slices.DeleteFunc(f.waits, func(w *inFlightWait) bool {
		if number > w.begun {
			return false
		}
		if w.open--; w.open == 0 {
			close(w.over)
		}
		return w.open == 0
	})
}

// wait waits until those that have begun have ended, or returns the error of ctx.
func (f *inFlight) wait(ctx context.Context) error {
	f.mu.Lock()
	if f.open == 0 {
		f.mu.Unlock()
		return nil
	}
	w := &inFlightWait{begun: f.begun, open: f.open, over: make(chan struct{})}
	f.waits = append(f.waits, w)
	f.mu.Unlock()
	select {
	case <-w.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
