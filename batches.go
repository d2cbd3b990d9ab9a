package sqllock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/expiring"
)

const (
	// maxBatch is how many rows one statement has at most.
	maxBatch = 256
	// batchSlowAfter is how long others wait behind a batch before they take another
	// connection, of maxLanes at most.
	batchSlowAfter = 100 * time.Millisecond
	maxLanes       = 4
	// maxAlone is how many statements whose batch failed are sent at a time.
	maxAlone = 4
	// batchTimeout is when a batch is given up. A connection that has gone dead does
	// not say so.
	batchTimeout = 5 * time.Second
	// aloneFor is how long statements for a key are sent alone after its row was found pinned.
	aloneFor = 5 * time.Second
)

// errAlone tells a caller to send its statement by itself: what happened to the batch
// need not be about its row.
var errAlone = errors.New("send it alone")

// errNoAnswer is what the callers of a batch are told that has no answer.
var errNoAnswer = fmt.Errorf("%w for %v", bounded.ErrNoAnswer, batchTimeout)

// batchers batch a repository's statements. Acquisitions and
// deletions have one each: a deletion reads, and two transactions that do both give
// each other serialization failures.
type batchers struct {
	acquire *batch.Batcher[params, attempted]
	remove  *batch.Batcher[params, removal]
	alone   loners
	turns   *turns // for statements that are sent alone because their batch failed
	looks   *turns // for reads before a try
}

// attempted is what became of an attempt to acquire.
type attempted struct {
	Acquisition
	unknown bool // whether it was applied
}

func (r *Repository) newBatchers() *batchers {
	return &batchers{
		acquire: newBatcher(r, r.acquireBatch, attempted{unknown: true}, func(params) { r.orphans.add() },
			func(p params, o batch.Outcome[attempted]) { go r.discard(p, o.Value) }),
		remove: newBatcher(r, r.removeBatch, removal{resent: true}, nil, func(params, batch.Outcome[removal]) {}),
		turns:  newTurns(maxAlone),
		looks:  newTurns(maxAlone),
	}
}

// newBatcher returns a batcher of statements for one row each. If a batch times out, its
// callers get timedOut.
func newBatcher[O any](r *Repository, run func(context.Context, []params, []batch.Outcome[O]), timedOut O, left func(params), late func(params, batch.Outcome[O])) *batch.Batcher[params, O] {
	return batch.New(batch.Settings[params, O]{
		Run: func(ctx context.Context, items []params, outcomes []batch.Outcome[O]) {
			run(ctx, items, outcomes)
			for i, o := range outcomes {
				// It was the batch's time that ended, not the caller's.
				if o.Err != nil && ctx.Err() != nil && !errors.Is(o.Err, errAlone) && !r.isRefusal(o.Err) {
					outcomes[i].Err = errNoAnswer
				}
			}
		},
		OnLeave:  left,
		OnOrphan: late,
		Key:      func(p params) string { return p.lockKey },
		Max:      maxBatch, SlowAfter: batchSlowAfter, Lanes: maxLanes, Timeout: batchTimeout, Grace: grace,
		TimedOut: batch.Outcome[O]{Value: timedOut, Err: errNoAnswer},
	})
}

// discard deletes a row that was acquired for an orphan, whose caller has gone.
func (r *Repository) discard(p params, a attempted) {
	defer r.orphans.done()
	if !a.Acquired && !a.unknown {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestClearing)
	defer cancel()
	// If it fails, the row expires, or goes before the key's next acquisition. Together,
	// because after a silence there may be many.
	_, _ = r.removeTogether(ctx, p)
}

// attemptTogether is attempt, together with those of others if that can be.
func (r *Repository) attemptTogether(ctx context.Context, p params) (got Acquisition, unknown bool, err error) {
	if r.batchers == nil {
		return r.attemptAlone(ctx, p)
	}
	if r.batchers.alone.has(p.lockKey) { // it may wait for its row, and must not hold up others
		return r.attemptAlone(ctx, p)
	}
	outcome, sent := r.batchers.acquire.Do(ctx, p)
	if !errors.Is(outcome.Err, errAlone) {
		left := sent && outcome.Err != nil && ended(ctx) != nil
		return outcome.Value.Acquisition, outcome.Value.unknown || left, outcome.Err
	}
	if err := r.batchers.turns.take(ctx); err != nil {
		return Acquisition{}, false, err
	}
	got, unknown, err = r.attemptAlone(ctx, p)
	r.batchers.turns.pass(err)
	if r.isBlocked(err) {
		r.batchers.alone.add(p.lockKey)
	}
	return got, unknown, err
}

// attemptAlone is attempt, with a limit that also a driver keeps that does not look at
// its context.
func (r *Repository) attemptAlone(ctx context.Context, p params) (Acquisition, bool, error) {
	counted := make(chan struct{})
	a, err := within(ctx, p.ttl, func(ctx context.Context) (a attempted, err error) {
		a.Acquisition, a.unknown, err = r.attempt(ctx, p)
		if a.Acquired {
			r.trimAfter(a.Token) //nolint:contextcheck // it is not the caller's
		}
		return a, err
	}, func(a attempted, _ error) { //nolint:contextcheck // the caller's is over
		<-counted
		r.discard(p, a)
	})
	left := errors.Is(err, bounded.ErrNoAnswer)
	if left {
		r.orphans.add()
		close(counted)
	}
	return a.Acquisition, a.unknown || left, err
}

// A removal is what became of the deletion of a row.
type removal struct {
	removed bool
	// resent says that the deletion was sent before, and it is not known with which
	// result: if the row is not there, that may be why.
	resent bool
}

// done reports whether the row is gone, as far as its holder can know.
func (r removal) done() bool { return r.removed || r.resent }

// removeTogether deletes a row, together with others if that can be.
func (r *Repository) removeTogether(ctx context.Context, p params) (removal, error) {
	if r.batchers == nil {
		return r.removeInTime(ctx, p)
	}
	outcome, _ := r.batchers.remove.Do(ctx, p)
	if !errors.Is(outcome.Err, errAlone) {
		return outcome.Value, outcome.Err
	}
	if err := r.batchers.turns.take(ctx); err != nil {
		return outcome.Value, err
	}
	alone, err := r.removeInTime(ctx, p)
	r.batchers.turns.pass(err)
	alone.resent = alone.resent || outcome.Value.resent
	return alone, err
}

// removeInTime is removeAlone with a limit that also a driver keeps that does not look at
// its context.
func (r *Repository) removeInTime(ctx context.Context, p params) (removal, error) {
	return within(ctx, p.ttl, func(ctx context.Context) (removal, error) { return r.removeAlone(ctx, p) }, nil)
}

func (r *Repository) removeAlone(ctx context.Context, p params) (got removal, err error) {
	got.resent, err = r.once(ctx, r.statements.remove, p, func(db executor, p params) error {
		n, err := execIn(ctx, db, r.statements.remove, p)
		got.removed = n > 0
		return err
	})
	return got, err
}

// acquireBatch runs the attempts of a batch in one transaction.
func (r *Repository) acquireBatch(ctx context.Context, items []params, outcomes []batch.Outcome[attempted]) {
	if len(items) == 1 {
		o := &outcomes[0]
		o.Value.Acquisition, o.Value.unknown, o.Err = r.attempt(ctx, items[0])
	} else {
		r.acquireMany(ctx, items, outcomes)
	}
	for _, o := range outcomes {
		if o.Value.Acquired {
			r.trimAfter(o.Value.Token) //nolint:contextcheck // it is not the batch's. All have the same token
			break
		}
	}
}

// removeBatch runs the deletions of a batch by one statement.
func (r *Repository) removeBatch(ctx context.Context, items []params, outcomes []batch.Outcome[removal]) {
	if len(items) == 1 {
		outcomes[0].Value, outcomes[0].Err = r.removeAlone(ctx, items[0])
		return
	}
	r.removeMany(ctx, items, outcomes)
}

// acquireMany acquires the rows of a batch, in the order of their keys, so that
// processes do not wait for each other in circles.
func (r *Repository) acquireMany(ctx context.Context, items []params, outcomes []batch.Outcome[attempted]) {
	free, err := r.withoutTaken(ctx, items, outcomes)
	var unknown bool
	var tokens map[string]int64
	if err == nil && len(free.rows) > 0 {
		tokens, unknown, err = r.attemptMany(ctx, free)
	}
	err = r.errOfMany(ctx, err, unknown)
	for i, p := range items {
		if o := &outcomes[i]; o.Err == nil && o.Value.Row == (Row{}) {
			o.Err, o.Value.unknown = err, unknown
			o.Value.Token, o.Value.Acquired = tokens[p.lockKey]
		}
	}
}

// errOfMany decides what an error of a statement for many is to each of them.
func (r *Repository) errOfMany(ctx context.Context, err error, unknown bool) error {
	if err == nil || unknown || ctx.Err() != nil { // the batch has used up the time of its callers
		return err
	}
	switch r.dialect.Classify(err) {
	case dialect.Transient, dialect.Schema, dialect.ReadOnly:
		return err // it would be the same alone
	default:
		return errAlone
	}
}

// withoutTaken returns a batch for the rows that may be acquired together. On MySQL a
// statement waits for a row that is pinned or being changed as long as the session says,
// and so would all others: there a batch has only rows that do not exist yet.
func (r *Repository) withoutTaken(ctx context.Context, items []params, outcomes []batch.Outcome[attempted]) (params, error) {
	if r.dialect.Returning {
		return together(items), nil
	}
	rows, err := r.peekAll(ctx, together(items))
	if err != nil {
		return params{}, err
	}
	var free []params
	for i, p := range items {
		switch row, there := rows[p.lockKey]; {
		case !there:
			free = append(free, p)
		case row.Expired() || row.Holder == p.holder:
			outcomes[i].Err = errAlone
		default:
			outcomes[i].Value.Row = row
		}
	}
	return together(free), nil
}

// together makes the parameters of one statement for many. In the four-column layout
// acquisitions share the time-to-live; deletions need not know it.
func together(items []params) params {
	p := params{rows: items}
	for _, one := range items {
		p.ttl = max(p.ttl, one.ttl)
	}
	return p
}

// attemptMany is attempt for many rows, of different keys. It returns the fencing tokens of
// those that were acquired, by LOCK_KEY.
func (r *Repository) attemptMany(ctx context.Context, p params) (tokens map[string]int64, unknown bool, err error) {
	unknown, err = r.write(ctx, func(db sqlx.ExtContext) (written bool, err error) {
		tokens, written, err = r.upsertMany(ctx, db, p)
		return written, err
	})
	return tokens, unknown, err
}

// upsertMany is upsert for many rows.
func (r *Repository) upsertMany(ctx context.Context, db sqlx.ExtContext, p params) (tokens map[string]int64, written bool, err error) {
	if r.dialect.Returning {
		tokens, err = r.upsertReturning(ctx, db, p)
	} else {
		tokens, written, err = r.upsertAndLook(ctx, db, p)
	}
	if err != nil || r.statements.drawOne.text == "" || len(tokens) == 0 {
		return tokens, written || err == nil, err
	}
	// One for all: it is higher than any before, and their keys are different.
	result, err := db.ExecContext(ctx, r.statements.drawOne.text)
	if err != nil {
		return nil, true, err
	}
	token, err := r.insertedToken(result)
	if err != nil {
		return nil, true, err
	}
	for lockKey := range tokens {
		tokens[lockKey] = token
	}
	return tokens, true, nil
}

func (r *Repository) upsertReturning(ctx context.Context, db sqlx.QueryerContext, p params) (map[string]int64, error) {
	s := r.statements.acquireAll
	rows, err := db.QueryxContext(ctx, s.text, s.args(p)...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err tells
	tokens := make(map[string]int64, len(p.rows))
	for rows.Next() {
		var lockKey string
		var number int64
		if err := rows.Scan(&lockKey, &number); err != nil {
			return nil, err
		}
		if tokens[unpadded(lockKey)], err = r.tokenOf(number); err != nil {
			return nil, err
		}
	}
	return tokens, rows.Err()
}

func (r *Repository) upsertAndLook(ctx context.Context, db sqlx.ExtContext, p params) (tokens map[string]int64, written bool, err error) {
	text, args := r.statements.acquireAll.bindRows(r.statements.acquireRow, p)
	if _, err := db.ExecContext(ctx, text, args...); err != nil {
		return nil, false, err
	}
	owned, err := selectRowIDs(ctx, db, r.statements.heldAll, p)
	tokens = make(map[string]int64, len(owned))
	for _, row := range p.rows {
		if owned[row.id()] {
			tokens[row.lockKey] = 0
		}
	}
	return tokens, true, err
}

// peekAll returns the rows of many keys, by LOCK_KEY.
func (r *Repository) peekAll(ctx context.Context, p params) (map[string]Row, error) {
	rows, err := selectRows(ctx, r.on(nil), r.statements.peekAll, p)
	found := make(map[string]Row, len(rows))
	for _, row := range rows {
		found[row.LockKey] = row
	}
	return found, err
}

// removeMany deletes the rows of a batch. Those that it did not find, or found pinned,
// are looked for alone.
func (r *Repository) removeMany(ctx context.Context, items []params, outcomes []batch.Outcome[removal]) {
	gone, resent, err := r.removeRows(ctx, together(items))
	// Unless it was refused it may have been applied.
	resent = resent || err != nil && !r.isRefusal(err)
	for i, one := range items {
		o := &outcomes[i]
		o.Value = removal{removed: err == nil && gone[one.id()], resent: resent}
		switch {
		case o.Value.removed:
		case r.isRace(err):
			o.Err = err
		case err != nil && ctx.Err() != nil:
			o.Err = err // no time is left to send it alone
		default:
			o.Err = errAlone
		}
	}
}

// removeRows deletes rows that are not pinned by one statement, and returns them.
func (r *Repository) removeRows(ctx context.Context, p params) (gone map[rowID]bool, resent bool, err error) {
	if !r.dialect.Returning {
		gone, err = r.pickAnd(ctx, r.statements.removeAll, p)
		return gone, false, err
	}
	resent, err = r.once(ctx, r.statements.removeAll, p, func(db executor, p params) (err error) {
		gone, err = selectRowIDs(ctx, db, r.statements.removeAll, p)
		return err
	})
	return gone, resent, err
}

// loners are the keys whose rows were found pinned lately: in a batch they would hold up
// the others.
type loners struct {
	till expiring.Map[string, struct{}]
}

func (l *loners) has(lockKey string) bool {
	_, ok := l.till.Get(lockKey)
	return ok
}

func (l *loners) add(lockKey string) {
	l.till.Put(lockKey, time.Now().Add(aloneFor), func(struct{}) struct{} { return struct{}{} })
}
