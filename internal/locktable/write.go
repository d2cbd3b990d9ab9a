package locktable

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/transaction"
)

// A writing is the statements that acquire the row of one claim, or the rows of several.
type writing interface {
	// run sends the statements. If verify is true, it returns an *isolationError unless they ran in a serializable
	// transaction; or, in Autocommit, dialect.ErrNotCommitted if they are not committed. written reports whether
	// anything was written before it failed.
	run(ctx context.Context, db executor, verify bool) (written bool, err error)
	// message sends a transaction of the table's isolation in one message. resent is as for write.
	message(ctx context.Context) (resent bool, err error)
}

// write acquires on an acquirer, by one message, in a transaction or on the pool, as the options say; or in an
// explicit transaction. The claims recognise their own rows, so that all of it can be sent again if the connection
// was closed.
func (t *Table) write(ctx context.Context, w writing, explicit bool) (unknown, resent bool, err error) {
	wrote := false // in another isolation
	if try, verify, ok := t.tryAlone(); ok && !explicit {
		written := false
		for try.Next(ctx) {
			written, try.Err = w.run(ctx, try.Conn, verify)
		}
		var wrong *isolationError
		if !errors.As(try.Err, &wrong) {
			return try.Err != nil && (written || !t.errors.isAnswer(try.Err)), try.Resent, try.Err
		}
		t.acquirers.distrust(wrong)
		wrote = true // the next statement finds the row of its own holder, unless another caller has the turn by then
	}
	if t.statements.plain.oneMessage.text != "" && !explicit {
		resent, err = w.message(ctx)
		return err != nil && (wrote || !t.errors.isAnswer(err)), resent || wrote, err
	}
	ran := false
	resent, err = t.pool.Run(ctx, &sql.TxOptions{Isolation: t.level}, func(tx *transaction.Tx) error {
		_, err := w.run(ctx, tx, false)
		ran = err == nil
		return err
	})
	return err != nil && (wrote || ran && !t.errors.isRefusedCommit(err)), resent || wrote, err
}

// tryAlone returns on what connections an acquisition is a statement without an explicit transaction, and whether to
// verify in what transaction it has run. ok is false if there are none.
func (t *Table) tryAlone() (try transaction.Try, verify, ok bool) {
	switch {
	case !t.transaction && t.dialect.ReturnsHolder: // the statement says whether it is committed
		return t.pool.Try(), true, true
	case !t.transaction:
		return t.pool.TryOutside(), false, true
	case t.acquirers.areTrusted():
		return t.acquirers.pool.TryWhole(), true, true // a session with another isolation is closed
	default:
		return transaction.Try{}, false, false
	}
}

// A oneRow is the writing of one claim.
type oneRow struct {
	table *Table
	claim Claim
	got   Result
}

// run runs the acquire statement, and finds out who owns the row then.
func (w *oneRow) run(ctx context.Context, db executor, verify bool) (written bool, err error) {
	t, v := w.table, values{Claim: w.claim}
	s := &t.statements.acquiring(w.claim).one
	if verify {
		s = &t.statements.acquiring(w.claim).oneVerified
	}
	w.got = Result{}
	answers := 0
	scan := func(rows *sql.Rows) (err error) {
		answers++
		w.got, written, err = t.scanResult(rows, w.claim, verify)
		return err
	}
	switch {
	case t.dialect.ReturnsHolder: // a statement that a node of Galera has repeated has two rows, and the last one counts
		if err = query(ctx, db, *s, v, scan); err == nil && answers == 0 && w.claim.turn == 0 {
			written, err = true, errNoOutcome
		}
	case t.dialect.Returning:
		err = queryFirst(ctx, db, *s, v, scan)
	default:
		_, err = db.ExecContext(ctx, s.text, s.args(v)...)
	}
	switch {
	case err != nil:
		w.got = Result{}
		return written, err
	case t.statements.draw.text != "":
		if t.dialect.Returning && !w.got.Acquired {
			w.got = Result{}
			return false, nil
		}
		w.got.Token, w.got.Acquired, err = t.draw(ctx, db, v)
	case !t.dialect.Returning && !t.dialect.ReturnsHolder:
		w.got.Row, err = t.peek(ctx, db, w.claim)
		w.got.Acquired = w.got.Row.Holder == w.claim.Holder
	}
	return true, err
}

func (w *oneRow) message(ctx context.Context) (resent bool, err error) {
	t, s := w.table, &w.table.statements.acquiring(w.claim).oneMessage
	var acquired, number, answers int64
	try := t.pool.TryWhole()
	for try.Next(ctx) {
		w.got, acquired, number, answers = Result{}, 0, 0, 0
		try.Err = readMessage(ctx, try.Conn, s.text, s.args(values{Claim: w.claim}), func(rows *sql.Rows) (err error) {
			answers++
			if t.dialect.ReturnsHolder {
				w.got, _, err = t.scanResult(rows, w.claim, false)
				return err
			}
			return rows.Scan(&acquired, &number)
		})
	}
	refused := t.dialect.ReturnsHolder && w.claim.turn != 0 && answers == 0
	if err = try.Err; err == nil && answers != 1 && !refused {
		err = errNoOutcome
	}
	if err == nil && !t.dialect.ReturnsHolder && acquired != 0 {
		w.got.Token, err = t.tokens.of(number)
		w.got.Acquired = err == nil
	}
	if err != nil {
		w.got = Result{}
	}
	return try.Resent, err
}

// readMessage sends a message, and gives the rows of its results to the functions, in order.
func readMessage(ctx context.Context, conn executor, text string, args []any, scans ...func(*sql.Rows) error) error {
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	for _, scan := range scans {
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		// The last time there is none: that waits for the answer to COMMIT.
		rows.NextResultSet()
	}
	return rows.Err()
}

// A manyRows is the writing of several claims, of different keys, in the order of their keys, so that processes
// cannot deadlock.
type manyRows struct {
	table  *Table
	rows   values
	tokens map[string]int64 // of those that were acquired, by LOCK_KEY
}

// acquiring returns the statements for the rows.
func (w *manyRows) acquiring() *acquisitions { return w.table.statements.acquiring(w.rows.rows...) }

// run acquires the rows by one statement, or by several where a message has no room for all.
func (w *manyRows) run(ctx context.Context, db executor, verify bool) (written bool, err error) {
	t := w.table
	var tokens map[string]int64
	for part := range w.rows.parts(t.room.of(len(w.rows.rows))) {
		some := manyRows{table: t, rows: part}
		wrote, err := some.runPart(ctx, db, verify)
		if written = written || wrote || err == nil; err != nil {
			return written, err
		}
		tokens = merged(tokens, some.tokens)
	}
	if w.tokens = tokens; t.statements.drawOne.text == "" || len(tokens) == 0 {
		return true, nil
	}
	// One for all: it is higher than any before, and their keys are different.
	result, err := db.ExecContext(ctx, t.statements.drawOne.text)
	if err != nil {
		return true, err
	}
	token, err := t.tokens.inserted(result)
	for lockKey := range w.tokens {
		w.tokens[lockKey] = token
	}
	return true, err
}

// runPart acquires the rows, without their tokens if these are drawn afterwards.
func (w *manyRows) runPart(ctx context.Context, db executor, verify bool) (written bool, err error) {
	if w.table.dialect.Returning || w.table.dialect.ReturnsHolder {
		w.tokens, err = w.upsertReturning(ctx, db, verify)
		return false, err
	}
	return w.upsertAndSelect(ctx, db)
}

func (w *manyRows) upsertReturning(ctx context.Context, db executor, verify bool) (map[string]int64, error) {
	acquiring := w.acquiring()
	s := &acquiring.all
	if verify {
		s = &acquiring.allVerified
	}
	text, args, err := s.bindMany(acquiring.row, w.rows)
	if err != nil {
		return nil, err
	}
	got := w.table.newAcquired(w.rows)
	if err := queryText(ctx, db, text, args, func(rows *sql.Rows) error { return got.scan(rows, verify) }); err != nil {
		return nil, err
	}
	return got.result()
}

func (w *manyRows) upsertAndSelect(ctx context.Context, db executor) (written bool, err error) {
	text, args, err := w.acquiring().all.bindMany(w.acquiring().row, w.rows)
	if err != nil {
		return false, err
	}
	if _, err := db.ExecContext(ctx, text, args...); err != nil {
		return false, err
	}
	owned, err := selectRowIDs(ctx, db, w.table.statements.heldAll, w.rows)
	w.note(owned, 0)
	return true, err
}

// note notes the rows that were acquired, which have one token.
func (w *manyRows) note(owned map[rowID]bool, token int64) {
	w.tokens = make(map[string]int64, len(owned))
	for _, c := range w.rows.rows {
		if owned[c.id()] {
			w.tokens[c.LockKey] = token
		}
	}
}

func (w *manyRows) message(ctx context.Context) (resent bool, err error) {
	t := w.table
	text, args, err := w.acquiring().allMessage.bindMany(w.acquiring().row, w.rows)
	if err != nil {
		return false, err
	}
	try := t.pool.TryWhole()
	for try.Next(ctx) {
		try.Err = w.send(ctx, try.Conn, text, args)
	}
	return try.Resent, try.Err
}

// send sends a message that acquires the rows, and notes which it has acquired.
func (w *manyRows) send(ctx context.Context, conn executor, text string, args []any) (err error) {
	t := w.table
	if t.dialect.ReturnsHolder {
		got := t.newAcquired(w.rows)
		if err := readMessage(ctx, conn, text, args, func(rows *sql.Rows) error { return got.scan(rows, false) }); err != nil {
			return err
		}
		w.tokens, err = got.result()
		return err
	}
	var number, answers int64
	owned := make(map[rowID]bool, len(w.rows.rows))
	err = readMessage(ctx, conn, text, args, func(rows *sql.Rows) error {
		answers++
		return rows.Scan(&number)
	}, func(rows *sql.Rows) error {
		id, err := scanRowID(rows)
		owned[id] = true
		return err
	})
	if err == nil && answers != 1 {
		err = errNoOutcome
	}
	if err != nil {
		return err
	}
	token, err := t.tokens.of(number)
	w.note(owned, token)
	return err
}

// serializable is how the database names the isolation of acquirers.
const serializable = "serializable"

// distrustFor is how long acquirers are not used after one was not what it should be.
const distrustFor = time.Minute

// acquirers are sessions that are SERIALIZABLE by themselves: one statement is then a serializable transaction,
// without the round trips of BEGIN and COMMIT.
//
// It is not taken for granted that they are. Another program may reset a session, and a pooler may have ignored the
// setting, or have given a statement another session. So each statement returns the isolation in which it ran. If
// that is another one, the row is acquired once more, in an explicit transaction, and so are all others for a while.
type acquirers struct {
	pool       transaction.Pool
	onFallback func(error)
	distrusted atomic.Pointer[time.Time] // until then
}

// newAcquirers returns nil if there are none. They may be those of pool, where renewals are sent, too.
func newAcquirers(pool transaction.Pool, db *sql.DB, onFallback func(error)) *acquirers {
	if db == nil {
		return nil
	}
	if onFallback == nil {
		onFallback = func(error) {}
	}
	if db != pool.DB {
		pool.DB, pool.Gate = db, nil
	}
	return &acquirers{pool: pool, onFallback: onFallback}
}

// areTrusted reports whether the next acquisition may rely on them.
func (a *acquirers) areTrusted() bool {
	if a == nil {
		return false
	}
	until := a.distrusted.Load()
	return until == nil || time.Now().After(*until)
}

// distrust has acquisitions use explicit transactions for a while.
func (a *acquirers) distrust(why error) {
	until := time.Now().Add(distrustFor)
	if before := a.distrusted.Swap(&until); before == nil || time.Now().After(*before) {
		a.onFallback(why)
	}
}

// An isolationError says that a statement that acquired did not run in a serializable transaction.
type isolationError struct{ got string }

// Error implements error.
func (e *isolationError) Error() string {
	return fmt.Sprintf("the lock was acquired in a transaction that is %q, not %q", e.got, serializable)
}

// checkIsolation returns an error unless the isolation is that of acquirers.
func checkIsolation(got string) error {
	if got == serializable {
		return nil
	}
	return &isolationError{got}
}

// errNoOutcome is why it is not known what a statement, or a message, has done.
var errNoOutcome = errors.New("the server did not say whether the row was acquired: a proxy may be rewriting results")

// scanResult scans a row that an acquire statement returns. written reports whether the row was acquired, although
// there is an error.
func (t *Table) scanResult(rows *sql.Rows, c Claim, verify bool) (got Result, written bool, err error) {
	var answer struct { // one allocation for all
		age, left sql.NullInt64
		number    int64
	}
	row := Row{Region: t.region, LockKey: c.LockKey, Holder: c.Holder}
	columns := []any{&answer.number}
	if t.dialect.ReturnsHolder {
		columns = []any{&row.Holder, &answer.age, &answer.left, &answer.number}
	}
	if err := t.scanVerified(rows, verify, columns...); err != nil {
		return Result{}, errors.As(err, new(*isolationError)) || errors.Is(err, dialect.ErrNotCommitted), err
	}
	if t.dialect.ReturnsHolder {
		row.Holder = unpadded(row.Holder)
	}
	if row.Holder != c.Holder {
		row.Age, row.Left = micros(answer.age), micros(answer.left)
		return Result{Row: row}, false, nil
	}
	got.Token, err = t.tokens.of(answer.number)
	got.Acquired = err == nil
	return got, err != nil, err
}

// scanVerified scans a row of an acquire statement. If verify is true, the row ends in the isolation in which the
// statement ran. In Autocommit any one will do.
func (t *Table) scanVerified(rows *sql.Rows, verify bool, columns ...any) error {
	if !verify {
		return rows.Scan(columns...)
	}
	var isolation string
	if err := rows.Scan(append(columns, &isolation)...); err != nil {
		return err
	}
	if t.transaction {
		return checkIsolation(isolation)
	}
	if isolation == dialect.NotCommitted {
		return dialect.ErrNotCommitted
	}
	return nil
}

// acquired collects the fencing tokens of the rows that a statement has acquired.
type acquired struct {
	table   *Table
	mine    map[rowID]bool
	byKey   map[string]int64 // by LOCK_KEY
	least   int              // how many answers there must be: one for each row, but not for one whose turn another has
	answers *int
}

func (t *Table) newAcquired(v values) acquired {
	a := acquired{t, v.ids(), make(map[string]int64, len(v.rows)), len(v.rows), new(int)}
	for _, c := range v.rows {
		if c.turn != 0 {
			a.least--
		}
	}
	return a
}

// scan scans a row that the statement returns.
func (a acquired) scan(rows *sql.Rows, verify bool) error {
	var id rowID
	var number int64
	columns := []any{&id.lockKey, &number}
	if a.table.dialect.ReturnsHolder {
		columns = []any{&id.lockKey, &id.holder, &number}
	}
	if err := a.table.scanVerified(rows, verify, columns...); err != nil {
		return err
	}
	*a.answers++
	id = rowID{unpadded(id.lockKey), unpadded(id.holder)}
	if a.table.dialect.ReturnsHolder && !a.mine[id] {
		delete(a.byKey, id.lockKey) // another holder's, whatever an earlier run of the statement has returned
		return nil
	}
	token, err := a.table.tokens.of(number)
	if err == nil {
		a.byKey[id.lockKey] = token
	}
	return err
}

// result returns the tokens, or an error if the statement has not returned what it should. A statement that a node of
// Galera has repeated has more rows.
func (a acquired) result() (map[string]int64, error) {
	if a.table.dialect.ReturnsHolder && *a.answers < a.least {
		return nil, errNoOutcome
	}
	return a.byKey, nil
}
