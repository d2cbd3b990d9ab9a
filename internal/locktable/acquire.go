package locktable

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/transaction"
)

// Acquire inserts the claim's row, or takes it over if it has expired or carries this very holder: a statement that
// is sent again after a lost race recognises its own row. It does not wait for another holder.
//
// An attempt that keeps losing races, or meets a row that a transaction has pinned, counts as not acquired. One that meets a
// leftover row of this client deletes it, and is made again.
//
// If the outcome is unknown (the connection broke, or ctx ended, while the transaction was being committed), Acquire returns
// the error, and cleans up: see [Table.CleanUp]. So it does if the connection was closed, and the statement was
// sent again and refused: then the error is of kind [OutcomeUnknown]. After an error the holder must not be used
// again, for a deletion of its row may come late.
//
// If c.InOrder is set, and another session has the turn of that key, c is not acquired, although the row may be free. If
// one row is not acquired then, it is not read, for its caller will wait for its turn, whatever is in the way.
func (t *Table) Acquire(ctx context.Context, c Claim) (_ Result, err error) {
	if err := ctx.Err(); err != nil {
		return Result{}, t.errors.explain(ctx, acquiring.op, err)
	}
	if t.file.isGone() {
		return Result{}, &Error{Op: acquiring.op, Kind: WrongTable, Err: errGone}
	}
	if c.InOrder != "" {
		if err := t.checkDirect(ctx); err != nil {
			return Result{}, err
		}
		c.turn = t.turnOf(c.InOrder)
	}
	var leftovers []Claim // whose rows it may meet, or their deletion by others
	if t.leftovers.Len() > 0 {
		leftovers = t.leftoversOf(c.lockKeys())
	}
	var o batch.Outcome[Result]
	sent := time.Now()
	for r := (retry{policy: acquiring, errors: t.errors, began: sent, sent: sent}); ; {
		sent = time.Now()
		o = t.acquires.do(ctx, c)
		c.resent = c.resent || o.Resent
		if o.Err == nil {
			break
		}
		if o.Unknown && t.errors.isRefusal(o.Err) {
			o.Err = fmt.Errorf("%w: %w", errOutcomeUnknown, o.Err) // not to be sent again
		}
		if c.turn != 0 && t.errors.isOf(o.Err, dialect.Exhausted) { // it cannot look whether the turn is free
			t.turns.fallBack(o.Err)
			c.turn = 0
			continue
		}
		if !r.again(ctx, o.Err) {
			err = r.explain(ctx, o.Err)
			break
		}
	}
	got := o.Value
	got.Sent = sent // no earlier one has written the row
	if o.Err != nil && o.Unknown || c.resent && !got.Acquired {
		grace := bounded.Grace
		if errors.Is(o.Err, bounded.ErrNoAnswer) { // the caller has waited for the driver already
			grace = 0
		}
		t.cleanUp(ctx, c, grace)
	}
	switch {
	case c.resent && !got.Acquired && (err == nil || Is(err, Race) || Is(err, PinnedRow)):
		return Result{}, &Error{Op: acquiring.op, Kind: OutcomeUnknown, Err: errOutcomeUnknown}
	case err == nil:
	case Is(err, Race), Is(err, PinnedRow):
		got, err = Result{}, nil // too late this time
	default:
		return Result{}, err
	}
	if !got.Acquired && got.Row == (Row{}) && (c.turn == 0 || c.IsJoint() || t.HasLeftovers()) {
		got.Row, _, err = t.Read(ctx, c)
		if err == nil && c.turn == 0 && (got.Row == (Row{}) || got.Row.Expired()) && t.home.isKnown() {
			err = t.explainFree(ctx)
		}
	}
	// The sweep may have deleted what was in the way before it was read, or since: then it is no leftover any more.
	isGone := len(leftovers) > 0 && (got.Row == (Row{}) || got.Row.Expired() || slices.ContainsFunc(leftovers, got.Row.isOf))
	if err == nil && !got.Acquired && !c.cleared && (isGone || t.IsLeftover(got.Row)) {
		return t.acquireAgain(ctx, c, got)
	}
	return got, err
}

// acquireAgain deletes the leftover rows of c's keys, one of which was in the way of an attempt, and makes another one.
func (t *Table) acquireAgain(ctx context.Context, c Claim, got Result) (Result, error) {
	switch err := t.deleteLeftoversOf(ctx, c); {
	case err != nil && !Is(err, PinnedRow):
		return Result{}, ofAttempt(err)
	case err != nil && t.IsLeftover(got.Row): // it is pinned
		return got, nil
	}
	// A row that was not there any more has been deleted by others, such as the sweep; or it was read on a server that
	// lags behind, which is why this is done once.
	c.cleared = true
	return t.Acquire(ctx, c)
}

// ofAttempt makes the error of a deletion that of the attempt for which it was sent: a caller that waits holds nothing that
// it could release.
func ofAttempt(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	return e.as(acquiring.op)
}

// explainFree returns an error if a row that looks free could not be acquired because the server is no longer a
// member of its cluster.
func (t *Table) explainFree(ctx context.Context) error {
	found, err := callAlone(ctx, t, reading, 0, func(ctx context.Context) (Cluster, error) {
		// Without its MEMBER_STATE the answer would read as that of a server without a group.
		return transaction.On(ctx, t.pool, func(conn *sql.Conn) (Cluster, error) { return readCluster(ctx, conn, t.statements.cluster) })
	}, nil)
	if left := t.home.leftBy(found); err == nil && left != nil {
		return &Error{Op: acquiring.op, Kind: Failed, Err: left}
	}
	// Another server has answered, or this one has joined meanwhile; or it cannot be asked.
	return nil
}

// acquireOne makes an attempt for a claim of one row or of several. The outcome of an error is unknown if it leaves
// it open whether the attempt was applied: a failed race never does.
func (t *Table) acquireOne(ctx context.Context, c Claim) (o batch.Outcome[Result]) {
	if len(c.More) > 0 {
		return t.acquireJoint(ctx, c)
	}
	if t.readBeforeAcquire {
		row, err := t.peekOne(ctx, c)
		if err != nil || row != (Row{}) && !row.Expired() && row.Holder != c.Holder {
			return batch.Outcome[Result]{Value: Result{Row: row}, Err: err}
		}
	}
	w := &oneRow{table: t, claim: c}
	o.Unknown, o.Resent, o.Err = t.write(ctx, w, false)
	o.Value = w.got
	if w.got.Acquired && o.Err == nil {
		t.countToken(w.got.Token) //nolint:contextcheck // the statement is not the caller's
	}
	return o
}

// acquireMany acquires the rows of a batch.
func (t *Table) acquireMany(ctx context.Context, claims []Claim, outcomes []batch.Outcome[Result]) {
	_ = t.inParts(len(claims), func(from, to int) error { // the outcomes have the errors
		return t.acquirePart(ctx, claims[from:to], outcomes[from:to])
	})
}

// acquirePart acquires rows in one transaction, in the order of their keys, so that processes cannot deadlock. It
// returns only an error that says that they were too many.
func (t *Table) acquirePart(ctx context.Context, claims []Claim, outcomes []batch.Outcome[Result]) (tooMany error) {
	clear(outcomes)
	free, err := t.withoutTaken(ctx, claims, outcomes)
	var unknown, resent bool
	w := &manyRows{table: t, rows: free}
	if err == nil && len(free.rows) > 0 {
		unknown, resent, err = t.write(ctx, w, false)
	}
	if err != nil {
		w.tokens = nil
	}
	if t.errors.isOf(err, dialect.TooLarge) && len(claims) > 1 {
		return err
	}
	err = t.errorOfMany(ctx, err, unknown)
	for i, c := range claims {
		outcomes[i].Value.Batched = true
		if o := &outcomes[i]; o.Err == nil && o.Value.Row == (Row{}) {
			o.Err, o.Unknown, o.Resent = err, unknown, resent
			o.Value.Token, o.Value.Acquired = w.tokens[c.LockKey]
		}
	}
	for _, token := range w.tokens {
		t.countToken(token) //nolint:contextcheck // the statement is not the batch's. All have the same token
		break
	}
	return nil
}

// errorOfMany decides what an error of a statement for many is to each of them.
func (t *Table) errorOfMany(ctx context.Context, err error, unknown bool) error {
	if err == nil || unknown || ctx.Err() != nil { // the batch has used up the time of its callers
		return err
	}
	switch t.errors(err) {
	case dialect.Transient, dialect.OldPlan, dialect.Schema, dialect.NoKey, dialect.OtherLayout, dialect.ReadOnly:
		return err // it would be the same alone
	default:
		return errRetryAlone
	}
}

// withoutTaken returns the values for the rows that may be acquired together. On MySQL a statement waits for a row
// that is pinned or being changed as long as the session says, and so would all others: there a batch has only rows
// that do not exist yet.
func (t *Table) withoutTaken(ctx context.Context, claims []Claim, outcomes []batch.Outcome[Result]) (values, error) {
	if t.dialect.Returning {
		return together(claims), nil
	}
	rows, err := t.peekMany(ctx, together(claims))
	if err != nil {
		return values{}, err
	}
	var free []Claim
	for i, c := range claims {
		switch row, there := rows[c.LockKey]; {
		case !there:
			free = append(free, c)
		case row.Expired() || row.Holder == c.Holder:
			outcomes[i].Err = errRetryAlone
		default:
			outcomes[i].Value.Row = row
		}
	}
	return together(free), nil
}

// errPartlyTaken rolls an acquisition back that did not get all of its rows.
var errPartlyTaken = errors.New("one of the rows is taken")

// errPinned rolls an acquisition back that would have to wait for a row.
var errPinned = errors.New("a row that has expired is pinned")

// longestPinnedPause limits the pause after that. There is no holder to wait for, so the next attempt comes soon.
const longestPinnedPause = 200 * time.Millisecond

// acquireJoint makes an attempt for all rows of c in one transaction, or another one if a message had no room for them.
func (t *Table) acquireJoint(ctx context.Context, c Claim) (o batch.Outcome[Result]) {
	for resent := false; ; {
		n := t.room.of(c.count())
		o = t.acquireTogether(ctx, c)
		resent = resent || o.Resent
		if !t.hasRefused(n, o.Err) {
			o.Resent = resent
			return o
		}
	}
}

// acquireTogether makes an attempt for all rows of c in one transaction, which is rolled back unless it gets all of
// them. They are written in the order of their keys, so that processes cannot deadlock. If a row is taken, the result
// says which only where that costs nothing.
func (t *Table) acquireTogether(ctx context.Context, c Claim) (o batch.Outcome[Result]) {
	w := &jointRows{manyRows: manyRows{table: t, rows: together(c.each())}}
	if t.statements.pickAny.text != "" { // the statement would wait for rows that are being renewed
		taken, expired, err := t.peekJoint(ctx, c)
		if err != nil || taken != (Row{}) {
			return batch.Outcome[Result]{Value: Result{Row: taken}, Err: err}
		}
		w.expired = expired
	}
	if w.acquiring().joint.text != "" && len(w.expired) == 0 && t.room.of(c.count()) == c.count() {
		o.Unknown, o.Resent, o.Err = w.exchange(ctx)
	} else {
		o.Unknown, o.Resent, o.Err = t.write(ctx, w, true)
	}
	switch {
	case errors.Is(o.Err, errPinned):
		bounded.Sleep(ctx, 1+jitter.N(longestPinnedPause))
		return batch.Outcome[Result]{Resent: o.Resent}
	case errors.Is(o.Err, errPartlyTaken):
		return batch.Outcome[Result]{Resent: o.Resent}
	case o.Err != nil:
		return o
	}
	o.Value.Acquired = true
	for _, token := range w.tokens {
		// The tokens of earlier holders of a row were drawn before that of this row.
		o.Value.Token = max(o.Value.Token, token)
	}
	t.countToken(o.Value.Token) //nolint:contextcheck // the statement is not the caller's
	return o
}

// A jointRows is the write of a joint claim, in an explicit transaction.
type jointRows struct {
	manyRows

	expired []string // LOCK_KEYs of the rows to be taken over
}

func (w *jointRows) run(ctx context.Context, db executor, _ bool) (written bool, err error) {
	t := w.table
	if err := t.pickExpired(ctx, db, w.expired); err != nil {
		return false, err
	}
	written, err = w.manyRows.run(ctx, db, false)
	if err == nil && len(w.tokens) < len(w.rows.rows) {
		err = t.explainPartly(ctx, db, w.rows)
	}
	if t.errors.isOf(err, dialect.Repeated) {
		err = t.errOneRow()
	}
	return written, err
}

// exchange does what run does in a transaction of two messages: one that begins it and acquires the rows, and COMMIT
// or ROLLBACK.
func (w *jointRows) exchange(ctx context.Context) (unknown, resent bool, err error) {
	t := w.table
	text, args, err := w.acquiring().joint.bindMany(w.acquiring().row, w.rows)
	if err != nil {
		return false, false, err
	}
	var refused error
	try := t.pool.TryWhole()
	for try.Next(ctx) {
		resent = resent || unknown // the COMMIT, which had no answer
		unknown, refused = false, nil
		if try.Err = w.send(ctx, try.Conn, text, args); try.Err != nil {
			continue // there was no COMMIT
		}
		if len(w.tokens) < len(w.rows.rows) {
			refused = t.explainPartly(ctx, try.Conn, w.rows)
			_, try.Err = try.Conn.ExecContext(ctx, "ROLLBACK")
			continue
		}
		_, try.Err = try.Conn.ExecContext(ctx, "COMMIT")
		unknown = try.Err != nil && !t.errors.isRefusedCommit(try.Err)
	}
	return unknown, resent, cmp.Or(refused, try.Err)
}

// explainPartly returns why not all rows of v were acquired. If no other holder has one of them, some are one row,
// because the collation takes different keys for one. Or the one whose turn another caller has was left out.
func (t *Table) explainPartly(ctx context.Context, db executor, v values) error {
	if t.collation == "" || slices.ContainsFunc(v.rows, func(c Claim) bool { return c.turn != 0 }) {
		return errPartlyTaken
	}
	var rows []Row
	for some := range v.parts(t.room.of(v.len())) {
		found, err := selectRows(ctx, db, t.statements.peekAll, some)
		if err != nil {
			return err
		}
		rows = append(rows, found...)
	}
	// There may be none: the server of a cluster may have ceased to be a member.
	if len(rows) == 0 || slices.ContainsFunc(rows, func(row Row) bool { return row.Holder != v.rows[0].Holder }) {
		return errPartlyTaken
	}
	return t.errOneRow()
}

// errOneRow says that the rows of a joint claim can never be acquired together.
func (t *Table) errOneRow() error {
	return &Error{Op: acquiring.op, Kind: OneRow, Err: fmt.Errorf("some of the keys differ, but are one for the database, because LOCK_KEY has the collation or type %s, "+
		"which does not distinguish them: name one of them, or change the collation", cmp.Or(t.collation, "of its own"))}
}

// pickExpired locks rows that have expired, or returns errPinned. The statement that acquires would wait for those
// that are pinned, on Oracle's MySQL for as long as the session says, and would keep the other rows, which it has
// written, from all others meanwhile.
func (t *Table) pickExpired(ctx context.Context, db executor, lockKeys []string) error {
	if len(lockKeys) == 0 {
		return nil
	}
	for some := range (values{keys: lockKeys}).parts(t.room.of(len(lockKeys))) {
		picked, err := t.pickAny(ctx, db, some.keys)
		if err == nil && len(picked) < len(some.keys) {
			err = errPinned
		}
		if err != nil {
			return err
		}
	}
	return nil
}
