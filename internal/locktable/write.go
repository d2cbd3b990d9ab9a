package locktable

import (
	"context"
	"database/sql"
	"errors"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/transaction"
)

// A sender sends acquisitions, each once: in which transaction, by which statements, and what their answers say. How often is
// the matter of [acquisitions].
type sender struct {
	*database

	tokens      tokens
	acquirers   *acquirers // nil for none
	level       sql.IsolationLevel
	transaction bool // whether to acquire in an explicit transaction
	// readBeforeAcquire reports whether a refused attempt would wait for a pinned row, so that each attempt reads the
	// row first, by a statement of its own: there is no LookMessage.
	readBeforeAcquire bool
	collation         string    // of LOCK_KEY if it takes different keys for one, or ""
	inFlight          *inFlight // counts the statements that trim
}

// acquireOne makes an attempt for a claim of one row or of several. The outcome of an error is unknown if it leaves
// it open whether the attempt was applied: a failed race never does.
func (a *sender) acquireOne(ctx context.Context, c Claim) (o batch.Outcome[Result]) {
	if len(c.More) > 0 {
		return a.acquireJoint(ctx, c)
	}
	if a.readBeforeAcquire {
		row, err := a.peekOne(ctx, c)
		if err != nil || row != (Row{}) && !row.Expired() && row.Holder != c.Holder {
			return batch.Outcome[Result]{Value: Result{Row: row}, Err: err}
		}
	}
	w := &oneRow{sender: a, claim: c}
	o.Unknown, o.Resent, o.Err = a.write(ctx, w, false)
	o.Value = w.got
	if w.got.Acquired && o.Err == nil {
		a.countToken(w.got.Token) //nolint:contextcheck // the statement is not the caller's
	}
	return o
}

// acquireMany acquires the rows of a batch.
func (a *sender) acquireMany(ctx context.Context, claims []Claim, outcomes []batch.Outcome[Result]) {
	_ = a.inParts(len(claims), func(from, to int) error { // the outcomes have the errors
		return a.acquirePart(ctx, claims[from:to], outcomes[from:to])
	})
}

// acquirePart acquires rows in one transaction, in the order of their keys, so that processes cannot deadlock. It
// returns only an error that says that they were too many.
func (a *sender) acquirePart(ctx context.Context, claims []Claim, outcomes []batch.Outcome[Result]) (tooMany error) {
	clear(outcomes)
	free, err := a.withoutTaken(ctx, claims, outcomes)
	var unknown, resent bool
	w := &manyRows{sender: a, rows: free}
	if err == nil && len(free.Rows) > 0 {
		unknown, resent, err = a.write(ctx, w, false)
	}
	if err != nil {
		w.tokens = nil
	}
	if a.server.IsOf(err, sqltext.TooLarge) && len(claims) > 1 {
		return err
	}
	err = a.errorOfMany(ctx, err, unknown)
	for i, c := range claims {
		outcomes[i].Value.Batched = true
		if o := &outcomes[i]; o.Err == nil && o.Value.Row == (Row{}) {
			o.Err, o.Unknown, o.Resent = err, unknown, resent
			o.Value.Token, o.Value.Acquired = w.tokens[c.LockKey]
		}
	}
	for _, token := range w.tokens {
		a.countToken(token) //nolint:contextcheck // the statement is not the batch's. All have the same token
		break
	}
	return nil
}

// errorOfMany decides what an error of a statement for many is to each of them.
func (a *sender) errorOfMany(ctx context.Context, err error, unknown bool) error {
	if err == nil || unknown || ctx.Err() != nil { // the batch has used up the time of its callers
		return err
	}
	switch a.server.Classify(err) {
	case sqltext.Transient, sqltext.OldPlan, sqltext.Schema, sqltext.NoKey, sqltext.OtherLayout, sqltext.ReadOnly:
		return err // it would be the same alone
	default:
		return errRetryAlone
	}
}

// withoutTaken returns the values for the rows that may be acquired together. On MySQL a statement waits for a row
// that is pinned or being changed as long as the session says, and so would all others: there a batch has only rows
// that do not exist yet.
func (a *sender) withoutTaken(ctx context.Context, claims []Claim, outcomes []batch.Outcome[Result]) (stmt.Values, error) {
	if a.dialect.Returning {
		return stmt.Together(claims), nil
	}
	rows, err := a.peekMany(ctx, stmt.Together(claims))
	if err != nil {
		return stmt.Values{}, err
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
	return stmt.Together(free), nil
}

// A writing is the statements that acquire the row of one claim, or the rows of several.
type writing interface {
	// run sends the statements. If verify is true, it returns an *isolationError unless they ran in a serializable
	// transaction; or, in Autocommit, sqltext.ErrNotCommitted if they are not committed. written reports whether
	// anything was written before it failed.
	run(ctx context.Context, db stmt.Executor, verify bool) (written bool, err error)
	// message sends a transaction of the table's isolation in one message. resent is as for write.
	message(ctx context.Context) (resent bool, err error)
}

// write acquires in one of three ways, the first that is possible:
//
//   - one statement without an explicit transaction: in Autocommit, or on one of the Acquirers, whose sessions have the
//     isolation; if one has another isolation, the next way follows;
//   - one message that is the whole transaction: with MultiStatements;
//   - an explicit transaction. If explicit is true, as for a joint claim, it is the only way.
//
// The claims recognise their own rows, so that all of it can be sent again if the connection was closed.
func (a *sender) write(ctx context.Context, w writing, explicit bool) (unknown, resent bool, err error) {
	wrote := false // in another isolation
	if try, verify, ok := a.tryAlone(); ok && !explicit {
		written := false
		for try.Next(ctx) {
			written, try.Err = w.run(ctx, try.Conn, verify)
		}
		var wrong *isolationError
		if !errors.As(try.Err, &wrong) {
			return try.Err != nil && (written || !a.server.IsUnapplied(try.Err)), try.Resent, try.Err
		}
		a.acquirers.distrust(wrong)
		wrote = true // the next statement finds the row of its own holder, unless another caller has the turn by then
	}
	if a.statements.Plain.OneMessage.Text != "" && !explicit {
		resent, err = w.message(ctx)
		return err != nil && (wrote || !a.server.IsUnapplied(err)), resent || wrote, err
	}
	ran := false
	resent, err = a.pool.Run(ctx, &sql.TxOptions{Isolation: a.level}, func(tx *transaction.Tx) error {
		_, err := w.run(ctx, tx, false)
		ran = err == nil
		return err
	})
	return err != nil && (wrote || ran && !a.server.IsRefusedCommit(err)), resent || wrote, err
}

// tryAlone returns on what connections an acquisition is a statement without an explicit transaction, and whether to
// verify in what transaction it has run. ok is false if there are none.
func (a *sender) tryAlone() (try transaction.Try, verify, ok bool) {
	switch {
	case !a.transaction && a.dialect.ReturnsHolder: // the statement says whether it is committed
		return a.pool.Try(), true, true
	case !a.transaction:
		return a.pool.TryOutside(), false, true
	case a.acquirers != nil && a.acquirers.areTrusted():
		return a.acquirers.pool.TryWhole(), true, true // a session with another isolation is closed
	default:
		return transaction.Try{}, false, false
	}
}

// A oneRow is the writing of one claim.
type oneRow struct {
	sender *sender
	claim  Claim
	got    Result
}

// run runs the acquire statement, and finds out who owns the row then.
func (w *oneRow) run(ctx context.Context, db stmt.Executor, verify bool) (written bool, err error) {
	a, v := w.sender, stmt.Values{Claim: w.claim}
	s := &a.statements.Acquiring(w.claim).One
	if verify {
		s = &a.statements.Acquiring(w.claim).OneVerified
	}
	w.got = Result{}
	answers := 0
	scan := func(rows *sql.Rows) (err error) {
		answers++
		w.got, written, err = a.scanResult(rows, w.claim, verify)
		return err
	}
	switch {
	case a.dialect.ReturnsHolder: // a statement that a node of Galera has repeated has two rows, and the last one counts
		if err = stmt.Query(ctx, db, *s, v, scan); err == nil && answers == 0 && w.claim.Turn == 0 {
			written, err = true, stmt.ErrNoOutcome
		}
	case a.dialect.Returning:
		err = stmt.QueryFirst(ctx, db, *s, v, scan)
	default:
		_, err = db.ExecContext(ctx, s.Text, s.Args(v)...)
	}
	switch {
	case err != nil:
		w.got = Result{}
		return written, err
	case a.statements.Draw.Text != "":
		if a.dialect.Returning && !w.got.Acquired {
			w.got = Result{}
			return false, nil
		}
		w.got.Token, w.got.Acquired, err = a.draw(ctx, db, v)
	case !a.dialect.Returning && !a.dialect.ReturnsHolder:
		w.got.Row, err = a.peek(ctx, db, w.claim)
		w.got.Acquired = w.got.Row.Holder == w.claim.Holder
	}
	return true, err
}

func (w *oneRow) message(ctx context.Context) (resent bool, err error) {
	a, s := w.sender, &w.sender.statements.Acquiring(w.claim).OneMessage
	looks := a.statements.Plain.LookMessage.Text != ""
	if looks {
		s = &a.statements.Acquiring(w.claim).LookMessage
	}
	var acquired, number, answers int64
	try := a.pool.TryWhole()
	for try.Next(ctx) {
		w.got, acquired, number, answers = Result{}, 0, 0, 0
		try.Err = stmt.ReadMessage(ctx, try.Conn, s.Text, s.Args(stmt.Values{Claim: w.claim}), func(rows *sql.Rows) (err error) {
			answers++
			if a.dialect.ReturnsHolder {
				w.got, _, err = a.scanResult(rows, w.claim, false)
				return err
			}
			if looks {
				w.got.Row, err = a.scanLooked(rows, w.claim, &acquired, &number)
				return err
			}
			return rows.Scan(&acquired, &number)
		})
	}
	refused := a.dialect.ReturnsHolder && w.claim.Turn != 0 && answers == 0
	if err = try.Err; err == nil && answers != 1 && !refused {
		err = stmt.ErrNoOutcome
	}
	if err == nil && !a.dialect.ReturnsHolder && acquired != 0 {
		w.got.Token, err = a.tokens.of(number)
		w.got.Acquired = err == nil
	}
	if err != nil {
		w.got = Result{}
	}
	return try.Resent, err
}

// scanLooked scans the outcome of a message that has read the row first, and returns the row if another holder has it.
func (a *sender) scanLooked(rows *sql.Rows, c Claim, acquired, number *int64) (Row, error) {
	var held int64
	var holder sql.NullString
	var age, left sql.NullInt64
	if err := rows.Scan(acquired, number, &held, &holder, &age, &left); err != nil || held == 0 {
		return Row{}, err
	}
	return Row{Region: a.region, LockKey: c.LockKey, Holder: stmt.Unpadded(holder.String), Age: stmt.Micros(age), Left: stmt.Micros(left)}, nil
}

// scanResult scans a row that an acquire statement returns. written reports whether the row was acquired, although
// there is an error.
func (a *sender) scanResult(rows *sql.Rows, c Claim, verify bool) (got Result, written bool, err error) {
	var answer struct { // one allocation for all
		age, left sql.NullInt64
		number    int64
	}
	row := Row{Region: a.region, LockKey: c.LockKey, Holder: c.Holder}
	columns := []any{&answer.number}
	if a.dialect.ReturnsHolder {
		columns = []any{&row.Holder, &answer.age, &answer.left, &answer.number}
	}
	if err := a.scanVerified(rows, verify, columns...); err != nil {
		return Result{}, errors.As(err, new(*isolationError)) || errors.Is(err, sqltext.ErrNotCommitted), err
	}
	if a.dialect.ReturnsHolder {
		row.Holder = stmt.Unpadded(row.Holder)
	}
	if row.Holder != c.Holder {
		row.Age, row.Left = stmt.Micros(answer.age), stmt.Micros(answer.left)
		return Result{Row: row}, false, nil
	}
	got.Token, err = a.tokens.of(answer.number)
	got.Acquired = err == nil
	return got, err != nil, err
}

// scanVerified scans a row of an acquire statement. If verify is true, the row ends in the isolation in which the
// statement ran. In Autocommit any one will do.
func (a *sender) scanVerified(rows *sql.Rows, verify bool, columns ...any) error {
	if !verify {
		return rows.Scan(columns...)
	}
	var isolation string
	if err := rows.Scan(append(columns, &isolation)...); err != nil {
		return err
	}
	if a.transaction {
		return checkIsolation(isolation)
	}
	if isolation == sqltext.NotCommitted {
		return sqltext.ErrNotCommitted
	}
	return nil
}
