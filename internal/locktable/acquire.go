package locktable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/bounded"
)

// Acquire inserts the claim's row, or takes it over if it has expired or carries this very
// holder: a statement that is sent again after a lost race recognises its own row. It does not
// wait for another holder.
//
// An attempt that keeps losing races, or meets a row that a transaction has pinned, counts as
// not acquired. If the outcome is unknown (the connection broke, or ctx ended, while the
// transaction was being committed), Acquire returns the error and sees to it that no row is
// left behind: it deletes the row at once or, if the database cannot be reached, before the
// next acquisition of the key. So it does if the connection was closed, and the statement was sent
// again and refused: then the error is of kind [OutcomeUnknown]. After an error the holder must not be
// used again, for that deletion may come late.
func (t *Table) Acquire(ctx context.Context, c Claim) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, t.errors.explain(ctx, acquiring.op, err)
	}
	if t.file.isGone() {
		return Result{}, &Error{acquiring.op, WrongTable, errGone}
	}
	switch left, err := t.deleteUnsettledOf(ctx, c); {
	case Is(err, PinnedRow): // the row is there and cannot be taken
		row, _, err := t.Read(ctx, c.single(left))
		return Result{Row: row}, err
	case err != nil:
		return Result{}, err
	}
	unknown, resent := false, false
	got, err := call(ctx, t.errors, acquiring, func(ctx context.Context) (Result, error) {
		got, err := t.acquires.do(ctx, c)
		resent = resent || got.resent
		if unknown = err != nil && got.unknown; unknown && t.errors.isRefusal(err) {
			err = fmt.Errorf("%w: %w", errOutcomeUnknown, err) // not to be sent again
		}
		return got.value, err
	})
	if unknown || resent && !got.Acquired {
		t.Abandon(ctx, c)
	}
	switch {
	case resent && !got.Acquired && (err == nil || Is(err, Race) || Is(err, PinnedRow)):
		return Result{}, &Error{acquiring.op, OutcomeUnknown, errOutcomeUnknown}
	case err == nil:
	case Is(err, Race), Is(err, PinnedRow):
		got = Result{} // too late this time
	default:
		return Result{}, err
	}
	if !got.Acquired && got.Row == (Row{}) {
		got.Row, _, err = t.Read(ctx, c)
		if err == nil && t.home.isKnown() && (got.Row == (Row{}) || got.Row.Expired()) {
			err = t.explainFree(ctx)
		}
		return got, err
	}
	return got, nil
}

// explainFree returns an error if a row that looks free could not be acquired because the server is
// no longer a member of its cluster.
func (t *Table) explainFree(ctx context.Context) error {
	found, err := callAlone(ctx, t.errors, reading, 0, func(ctx context.Context) (Cluster, error) {
		// Without its MEMBER_STATE the answer would read as that of a server without a group.
		return readCluster(ctx, t.pool.db, t.statements.cluster)
	}, nil)
	if left := t.home.leftBy(found); err == nil && left != nil {
		return &Error{acquiring.op, Failed, left}
	}
	// Another server has answered, or this one has joined meanwhile; or it cannot be asked.
	return nil
}

// acquireOne makes an attempt for one row. The effect of an error is unknown if it leaves it
// open whether the attempt was applied: a failed race never does.
func (t *Table) acquireOne(ctx context.Context, c Claim) (got effect[Result], err error) {
	if t.readBeforeAcquire {
		row, ok, err := t.peekOn(ctx, c)
		if err != nil || ok && !row.Expired() && row.Holder != c.Holder {
			return effect[Result]{value: Result{Row: row}}, err
		}
	}
	got.unknown, got.resent, err = t.write(ctx, ways{
		statement: func(db executor, verify bool) (written bool, err error) {
			got.value, written, err = t.upsert(ctx, db, c, verify)
			return written, err
		},
		message: func() (resent bool, err error) {
			got.value, resent, err = t.acquireByMessage(ctx, c)
			return resent, err
		},
	})
	if got.value.Acquired && err == nil {
		t.countToken(got.value.Token) //nolint:contextcheck // the statement is not the caller's
	}
	return got, err
}

// ways are two ways to acquire the same rows.
type ways struct {
	// statement runs the statements on what it is given. If verify is true, it returns an
	// *isolationError unless they ran in a serializable transaction; or, in Autocommit,
	// dialect.ErrNotCommitted if they are not committed. written reports whether
	// anything was written before it failed.
	statement func(db executor, verify bool) (written bool, err error)
	// message sends a transaction of the table's isolation in one message. resent is as for write.
	message func() (resent bool, err error)
}

// write acquires on an acquirer, by one message, in a transaction or on the pool, as the options
// say. The claims recognise their own rows, so that all of it can be sent again if the connection was closed.
func (t *Table) write(ctx context.Context, w ways) (unknown, resent bool, err error) {
	if !t.transaction {
		written, send, verify := false, t.pool.sendAlone, t.dialect.ReturnsHolder
		if verify { // the statement says whether it is committed
			send = t.pool.send
		}
		resent, err := send(ctx, func(db executor) (err error) {
			written, err = w.statement(db, verify)
			return err
		})
		return err != nil && (written || !t.errors.isAnswer(err)), resent, err
	}
	wrote := false // in another isolation
	if t.acquirers.areTrusted() {
		written, resent, err := t.acquirers.send(ctx, w.statement)
		var wrong *isolationError
		if !errors.As(err, &wrong) {
			return err != nil && (written || !t.errors.isAnswer(err)), resent, err
		}
		t.acquirers.distrust(wrong)
		wrote = true // the next statement finds the row of its own holder
	}
	if t.statements.acquireMessage.text != "" {
		resent, err = w.message()
		unknown = err != nil && !t.errors.isAnswer(err)
	} else {
		unknown, err = t.writeInTransaction(ctx, w)
	}
	return unknown || wrote && err != nil, resent, err
}

// writeInTransaction acquires in an explicit transaction.
func (t *Table) writeInTransaction(ctx context.Context, w ways) (unknown bool, err error) {
	tx, err := t.pool.begin(ctx, t.level)
	if err != nil {
		return false, err
	}
	if _, err := w.statement(tx.Tx, false); err != nil {
		_ = tx.Rollback() // a broken connection does that by itself; err says more
		return false, err
	}
	err = tx.Commit()
	return err != nil && !t.errors.isRefusedCommit(err), err
}

// upsert runs the acquire statement, and finds out who owns the row then. written reports
// whether the statement succeeded, whatever came after.
func (t *Table) upsert(ctx context.Context, db executor, c Claim, verify bool) (got Result, written bool, err error) {
	s, v := t.statements.acquire, values{Claim: c}
	if verify {
		s = t.statements.acquireVerified
	}
	if t.dialect.Returning || t.dialect.ReturnsHolder {
		answered := false
		scan := func(rows *sqlx.Rows) (err error) {
			answered = true
			got, written, err = t.scanResult(rows, c, verify)
			return err
		}
		if t.dialect.ReturnsHolder { // a statement that a node of Galera has repeated has two rows, and the last one counts
			err = query(ctx, db, s, v, scan)
		} else {
			err = queryFirst(ctx, db, s, v, scan)
		}
		if err == nil && !answered && t.dialect.ReturnsHolder {
			written, err = true, errNoOutcome
		}
	} else {
		_, err = db.ExecContext(ctx, s.text, s.args(v)...)
	}
	switch {
	case err != nil:
		return Result{}, written, err
	case t.statements.draw.text != "":
		if t.dialect.Returning && !got.Acquired {
			return Result{}, false, nil
		}
		got.Token, got.Acquired, err = t.draw(ctx, db, v)
	case !t.dialect.Returning && !t.dialect.ReturnsHolder:
		got.Row, _, err = t.peek(ctx, db, c)
		got.Acquired = got.Row.Holder == c.Holder
	}
	return got, true, err
}

// draw draws a fencing token by a statement of its own, after the acquire statement, for the
// owner of the row alone. Only the owner draws, so the tokens of one key are drawn in the
// order of its holders: also outside of a transaction, because a lease that is over before the
// answer comes is none.
func (t *Table) draw(ctx context.Context, db sqlx.ExecerContext, v values) (token int64, acquired bool, err error) {
	s := t.statements.draw
	result, err := db.ExecContext(ctx, s.text, s.args(v)...)
	if err != nil {
		return 0, false, err
	}
	// This count can be trusted on MySQL too: rows were inserted, not changed.
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return 0, false, err
	}
	token, err = t.tokens.inserted(result)
	return token, err == nil, err
}

// trimTimeout bounds the statement that trims. If it fails, a later one does the work.
const trimTimeout = time.Second

// countToken keeps the table that tokens are drawn from small. The statement for that runs in
// the background. Settle waits for it.
func (t *Table) countToken(token int64) {
	if t.statements.trim.text != "" && t.tokens.isTrimDue() {
		t.orphans.add()
		go t.trim(token)
	}
}

func (t *Table) trim(token int64) {
	defer t.orphans.done()
	ctx, cancel := context.WithTimeout(context.Background(), trimTimeout)
	defer cancel()
	// The lock is acquired: what is left in that table does not concern its holder.
	_, _ = bounded.Do(ctx, bounded.Grace, func() (int64, error) {
		return exec(ctx, t.pool.db, t.statements.trim, values{token: trimBefore(token)})
	}, nil)
}
