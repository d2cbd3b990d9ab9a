package locktable

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
)

// errPartlyTaken rolls an acquisition back that did not get all of its rows.
var errPartlyTaken = errors.New("one of the rows is taken")

// errPinned rolls an acquisition back that would have to wait for a row.
var errPinned = errors.New("a row that has expired is pinned")

// longestPinnedPause limits the pause after that. There is no holder to wait for, so the next attempt comes soon.
const longestPinnedPause = 200 * time.Millisecond

// acquireJoint makes an attempt for all rows of c in one transaction, or another one if a message had no room for them.
func (a *sender) acquireJoint(ctx context.Context, c Claim) (o batch.Outcome[Result]) {
	for resent := false; ; {
		n := a.room.of(c.Count())
		o = a.acquireTogether(ctx, c)
		resent = resent || o.Resent
		if o.Err == nil || !a.hasRefused(n, o.Err) {
			o.Resent = resent
			return o
		}
	}
}

// acquireTogether makes an attempt for all rows of c in one transaction, which is rolled back unless it gets all of
// them. They are written in the order of their keys, so that processes cannot deadlock. If a row is taken, the result
// says which only where that costs nothing.
func (a *sender) acquireTogether(ctx context.Context, c Claim) (o batch.Outcome[Result]) {
	w := &jointRows{manyRows: manyRows{sender: a, rows: stmt.Together(c.Each())}}
	if a.statements.PickAny.Text != "" { // the statement would wait for rows that are being renewed
		taken, expired, err := a.peekJoint(ctx, c)
		if err != nil || taken != (Row{}) {
			return batch.Outcome[Result]{Value: Result{Row: taken}, Err: err}
		}
		w.expired = expired
	}
	if w.acquiring().Joint.Text != "" && len(w.expired) == 0 && a.room.of(c.Count()) == c.Count() {
		o.Unknown, o.Resent, o.Err = w.exchange(ctx)
	} else {
		o.Unknown, o.Resent, o.Err = a.write(ctx, w, true)
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
	a.countToken(o.Value.Token) //nolint:contextcheck // the statement is not the caller's
	return o
}

// pickExpired locks rows that have expired, or returns errPinned. The statement that acquires would wait for those
// that are pinned, on Oracle's MySQL for as long as the session says, and would keep the other rows, which it has
// written, from all others meanwhile.
func (a *sender) pickExpired(ctx context.Context, db stmt.Executor, lockKeys []string) error {
	if len(lockKeys) == 0 {
		return nil
	}
	for some := range (stmt.Values{Keys: lockKeys}).Parts(a.room.of(len(lockKeys))) {
		picked, err := a.pickAny(ctx, db, some.Keys)
		if err == nil && len(picked) < len(some.Keys) {
			err = errPinned
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// explainPartly returns why not all rows of v were acquired. If no other holder has one of them, some are one row,
// because the collation takes different keys for one. Or the one whose turn another caller has was left out.
func (a *sender) explainPartly(ctx context.Context, db stmt.Executor, v stmt.Values) error {
	if a.collation == "" || slices.ContainsFunc(v.Rows, func(c Claim) bool { return c.Turn != 0 }) {
		return errPartlyTaken
	}
	var rows []Row
	for some := range v.Parts(a.room.of(v.Len())) {
		found, err := stmt.SelectRows(ctx, db, a.statements.PeekAll, some)
		if err != nil {
			return err
		}
		rows = append(rows, found...)
	}
	// There may be none: the server of a cluster may have ceased to be a member.
	if len(rows) == 0 || slices.ContainsFunc(rows, func(row Row) bool { return row.Holder != v.Rows[0].Holder }) {
		return errPartlyTaken
	}
	return a.errOneRow()
}

// errOneRow says that the rows of a joint claim can never be acquired together.
func (a *sender) errOneRow() error {
	return &dbcall.Error{Op: acquiring.Op, Kind: dbcall.OneRow, Err: fmt.Errorf("some of the keys differ, but are one for the database, because LOCK_KEY has the collation or type %s, "+
		"which does not distinguish them: name one of them, or change the collation", cmp.Or(a.collation, "of its own"))}
}

// A manyRows is the writing of several claims, of different keys, in the order of their keys, so that processes
// cannot deadlock.
type manyRows struct {
	sender *sender
	rows   stmt.Values
	tokens map[string]int64 // of those that were acquired, by LOCK_KEY
}

// acquiring returns the statements for the rows.
func (w *manyRows) acquiring() *stmt.Acquire {
	return w.sender.statements.Acquiring(w.rows.Rows...)
}

// run acquires the rows by one statement, or by several where a message has no room for all.
func (w *manyRows) run(ctx context.Context, db stmt.Executor, verify bool) (written bool, err error) {
	a := w.sender
	var tokens map[string]int64
	for part := range w.rows.Parts(a.room.of(len(w.rows.Rows))) {
		some := manyRows{sender: a, rows: part}
		wrote, err := some.runPart(ctx, db, verify)
		if written = written || wrote || err == nil; err != nil {
			return written, err
		}
		tokens = merged(tokens, some.tokens)
	}
	if w.tokens = tokens; a.statements.DrawOne.Text == "" || len(tokens) == 0 {
		return true, nil
	}
	// One for all: it is higher than any before, and their keys are different.
	result, err := db.ExecContext(ctx, a.statements.DrawOne.Text)
	if err != nil {
		return true, err
	}
	token, err := a.tokens.inserted(result)
	for lockKey := range w.tokens {
		w.tokens[lockKey] = token
	}
	return true, err
}

// runPart acquires the rows, without their tokens if these are drawn afterwards.
func (w *manyRows) runPart(ctx context.Context, db stmt.Executor, verify bool) (written bool, err error) {
	if w.sender.dialect.Returning || w.sender.dialect.ReturnsHolder {
		w.tokens, err = w.upsertReturning(ctx, db, verify)
		return false, err
	}
	return w.upsertAndSelect(ctx, db)
}

func (w *manyRows) upsertReturning(ctx context.Context, db stmt.Executor, verify bool) (map[string]int64, error) {
	texts := w.acquiring()
	s := &texts.All
	if verify {
		s = &texts.AllVerified
	}
	text, args, err := s.BindMany(texts.Row, w.rows)
	if err != nil {
		return nil, err
	}
	got := newAcquired(w.sender, w.rows)
	if err := stmt.QueryText(ctx, db, text, args, func(rows *sql.Rows) error { return got.scan(rows, verify) }); err != nil {
		return nil, err
	}
	return got.result()
}

func (w *manyRows) upsertAndSelect(ctx context.Context, db stmt.Executor) (written bool, err error) {
	text, args, err := w.acquiring().All.BindMany(w.acquiring().Row, w.rows)
	if err != nil {
		return false, err
	}
	if _, err := db.ExecContext(ctx, text, args...); err != nil {
		return false, err
	}
	owned, err := stmt.SelectRowIDs(ctx, db, w.sender.statements.HeldAll, w.rows)
	w.note(owned, 0)
	return true, err
}

func (w *manyRows) message(ctx context.Context) (resent bool, err error) {
	a := w.sender
	text, args, err := w.acquiring().AllMessage.BindMany(w.acquiring().Row, w.rows)
	if err != nil {
		return false, err
	}
	try := a.pool.TryWhole()
	for try.Next(ctx) {
		try.Err = w.send(ctx, try.Conn, text, args)
	}
	return try.Resent, try.Err
}

// send sends a message that acquires the rows, and notes which it has acquired.
func (w *manyRows) send(ctx context.Context, conn stmt.Executor, text string, args []any) (err error) {
	a := w.sender
	if a.dialect.ReturnsHolder {
		got := newAcquired(a, w.rows)
		if err := stmt.ReadMessage(ctx, conn, text, args, func(rows *sql.Rows) error { return got.scan(rows, false) }); err != nil {
			return err
		}
		w.tokens, err = got.result()
		return err
	}
	var number, answers int64
	owned := make(map[stmt.RowID]bool, len(w.rows.Rows))
	err = stmt.ReadMessage(ctx, conn, text, args, func(rows *sql.Rows) error {
		answers++
		return rows.Scan(&number)
	}, func(rows *sql.Rows) error {
		id, err := stmt.ScanRowID(rows)
		owned[id] = true
		return err
	})
	if err == nil && answers != 1 {
		err = stmt.ErrNoOutcome
	}
	if err != nil {
		return err
	}
	token, err := a.tokens.of(number)
	w.note(owned, token)
	return err
}

// note notes the rows that were acquired, which have one token.
func (w *manyRows) note(owned map[stmt.RowID]bool, token int64) {
	w.tokens = make(map[string]int64, len(owned))
	for _, c := range w.rows.Rows {
		if owned[c.ID()] {
			w.tokens[c.LockKey] = token
		}
	}
}

// A jointRows is the write of a joint claim, in an explicit transaction.
type jointRows struct {
	manyRows

	expired []string // LOCK_KEYs of the rows to be taken over
}

func (w *jointRows) run(ctx context.Context, db stmt.Executor, _ bool) (written bool, err error) {
	a := w.sender
	if err := a.pickExpired(ctx, db, w.expired); err != nil {
		return false, err
	}
	written, err = w.manyRows.run(ctx, db, false)
	if err == nil && len(w.tokens) < len(w.rows.Rows) {
		err = a.explainPartly(ctx, db, w.rows)
	}
	if err != nil && a.server.IsOf(err, sqltext.Repeated) {
		err = a.errOneRow()
	}
	return written, err
}

// exchange does what run does in a transaction of two messages: one that begins it and acquires the rows, and COMMIT
// or ROLLBACK.
func (w *jointRows) exchange(ctx context.Context) (unknown, resent bool, err error) {
	a := w.sender
	text, args, err := w.acquiring().Joint.BindMany(w.acquiring().Row, w.rows)
	if err != nil {
		return false, false, err
	}
	var refused error
	try := a.pool.TryWhole()
	for try.Next(ctx) {
		resent = resent || unknown // the COMMIT, which had no answer
		unknown, refused = false, nil
		if try.Err = w.send(ctx, try.Conn, text, args); try.Err != nil {
			continue // there was no COMMIT
		}
		if len(w.tokens) < len(w.rows.Rows) {
			refused = a.explainPartly(ctx, try.Conn, w.rows)
			_, try.Err = try.Conn.ExecContext(ctx, "ROLLBACK")
			continue
		}
		_, try.Err = try.Conn.ExecContext(ctx, "COMMIT")
		unknown = try.Err != nil && !a.server.IsRefusedCommit(try.Err)
	}
	return unknown, resent, cmp.Or(refused, try.Err)
}

// acquired collects the fencing tokens of the rows that a statement has acquired.
type acquired struct {
	sender  *sender
	mine    map[stmt.RowID]bool
	byKey   map[string]int64 // by LOCK_KEY
	least   int              // how many answers there must be: one for each row, but not for one whose turn another has
	answers *int
}

func newAcquired(of *sender, v stmt.Values) acquired {
	a := acquired{of, v.IDs(), make(map[string]int64, len(v.Rows)), len(v.Rows), new(int)}
	for _, c := range v.Rows {
		if c.Turn != 0 {
			a.least--
		}
	}
	return a
}

// scan scans a row that the statement returns.
func (a acquired) scan(rows *sql.Rows, verify bool) error {
	var id stmt.RowID
	var number int64
	columns := []any{&id.LockKey, &number}
	if a.sender.dialect.ReturnsHolder {
		columns = []any{&id.LockKey, &id.Holder, &number}
	}
	if err := a.sender.scanVerified(rows, verify, columns...); err != nil {
		return err
	}
	*a.answers++
	id = stmt.RowID{LockKey: stmt.Unpadded(id.LockKey), Holder: stmt.Unpadded(id.Holder)}
	if a.sender.dialect.ReturnsHolder && !a.mine[id] {
		delete(a.byKey, id.LockKey) // another holder's, whatever an earlier run of the statement has returned
		return nil
	}
	token, err := a.sender.tokens.of(number)
	if err == nil {
		a.byKey[id.LockKey] = token
	}
	return err
}

// result returns the tokens, or an error if the statement has not returned what it should. A statement that a node of
// Galera has repeated has more rows.
func (a acquired) result() (map[string]int64, error) {
	if a.sender.dialect.ReturnsHolder && *a.answers < a.least {
		return nil, stmt.ErrNoOutcome
	}
	return a.byKey, nil
}
