package locktable

import (
	"context"
	"database/sql"
	"errors"
	"reflect"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/transaction"
)

// A Tx is an open transaction of the user's.
type Tx interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// QueryRow sends a query in an open transaction of the user's, and returns its first row.
type QueryRow func(ctx context.Context, query string, args ...any) Scanner

// A Scanner is a row, or an error that Scan returns: sql.ErrNoRows if there is none.
type Scanner interface{ Scan(dest ...any) error }

// A Guardable is an open transaction of the user's in which [Table.Guard] pins rows: see [OverSQL] and [OverRows].
type Guardable interface {
	guard(ctx context.Context, t *Table, c Claim) (GuardResult, error)
}

// OverSQL returns what to guard a transaction of database/sql by, or nil if tx is nil or a nil pointer.
func OverSQL(tx Tx) Guardable {
	v := reflect.ValueOf(tx)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return overSQL{tx}
}

// OverRows returns what to guard any other transaction by, or nil if queryRow is nil.
func OverRows(queryRow QueryRow) Guardable {
	if queryRow == nil {
		return nil
	}
	return queryRow
}

// Guard pins the row inside tx, a transaction of the user's, if it carries the claim's holder.
func (t *Table) Guard(ctx context.Context, tx Guardable, c Claim) (GuardResult, error) {
	return tx.guard(ctx, t, c)
}

type overSQL struct{ tx Tx }

func (o overSQL) guard(ctx context.Context, t *Table, c Claim) (GuardResult, error) {
	return t.guarded(ctx, c, func(ctx context.Context) (bool, error) {
		return t.guard(ctx, o.tx, c)
	})
}

func (queryRow QueryRow) guard(ctx context.Context, t *Table, c Claim) (GuardResult, error) {
	if t.statements.guards.writing.text != "" {
		return NotHeld, &Error{Op: guarding.op, Kind: WrongTx, Err: errUncounted}
	}
	return t.guarded(ctx, c, func(ctx context.Context) (bool, error) {
		s, v := t.guardsOf(c)
		text, args, err := s.locking.bind(v)
		if err != nil {
			return false, err
		}
		found := 1 // that of one row counts nothing
		err = queryRow(ctx, text, args...).Scan(&found)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		return err == nil && found == c.count(), err
	})
}

// guardsOf returns the statements that pin the rows of c, and their values.
func (t *Table) guardsOf(c Claim) (guards, values) {
	if c.IsJoint() {
		return t.statements.guardsAll, together(c.each())
	}
	return t.statements.guards, values{Claim: c}
}

// errUncounted is why a transaction that only returns rows cannot be guarded.
var errUncounted = errors.New("on a cluster the row must be changed and the change counted, which a query for a row cannot do: use Lease.Guard")

// guarded runs pin, which pins the row inside a transaction of the user's.
func (t *Table) guarded(ctx context.Context, c Claim, pin func(context.Context) (bool, error)) (GuardResult, error) {
	if t.file.isGone() {
		return NotHeld, nil
	}
	pinned, err := callAlone(ctx, t, guarding, c.TTL, pin, nil)
	switch {
	case Is(err, Race):
		// The row has changed since the snapshot of tx: by a renewal, after which tx may be tried again, or by
		// another holder.
		if held, unread := t.IsHeld(ctx, c); unread == nil && !held {
			return NotHeld, nil
		}
		return NotHeld, err
	case Is(err, PinnedRow): // another statement has it locked for longer than the session waits
		return NotHeld, &Error{Op: guarding.op, Kind: Failed, Err: errors.Unwrap(err)}
	case err != nil:
		return NotHeld, err
	case pinned:
		return Guarded, nil
	}
	// The transaction does not see the row. Is it gone, or newer than tx?
	held, err := t.IsHeld(ctx, c)
	switch {
	case err != nil || !held:
		return NotHeld, err
	case t.dialect.LocksLatest:
		return NotHeld, &Error{Op: guarding.op, Kind: Failed, Err: errNotThere}
	}
	return StaleSnapshot, nil
}

// errNotThere is why the row of a lease is not found in a transaction whose server reads what was committed last.
var errNotThere = errors.New("the transaction's server does not have the row of the lease: it lags behind, is not ONLINE in its replication group, or tx is in another database")

// guard pins the row: by a lock, or by a change where the server certifies what a transaction has changed. It asks
// the server of tx, which need not be the one that was asked at the start.
func (t *Table) guard(ctx context.Context, tx Tx, c Claim) (pinned bool, err error) {
	if t.statements.guards.writing.text == "" {
		return t.guardByLocking(ctx, tx, c)
	}
	never := t.statements.guards.locking.text == "" // can a lock do
	if !never && !t.certification.found.Load() && t.certification.isDue() {
		found, err := readCluster(ctx, tx, t.statements.clusterVariables)
		switch {
		case t.errors.isRefusal(err):
			// The server may have rolled tx back. A statement that follows would then be a transaction of its own,
			// and its lock gone at once.
			t.certification.asked.Store(nil)
			return false, err
		case err != nil:
			return t.guardUnanswered(ctx, tx, c)
		}
		t.certification.know(found)
	}
	if never || t.certification.found.Load() {
		return t.guardByWriting(ctx, tx, c)
	}
	return t.guardByLocking(ctx, tx, c)
}

// guardUnanswered guards where the server has not answered what it is. If it answers the guard's own statement it
// cannot say, and is not asked again for a while.
func (t *Table) guardUnanswered(ctx context.Context, tx Tx, c Claim) (pinned bool, err error) {
	pinned, err = t.guardByLocking(ctx, tx, c)
	if err == nil {
		t.certification.know(Cluster{})
	} else {
		t.certification.asked.Store(nil)
	}
	return pinned, err
}

func (t *Table) guardByWriting(ctx context.Context, tx Tx, c Claim) (pinned bool, err error) {
	// This count can be trusted on MySQL too: a row that is found is changed.
	return t.guardParts(c, func(s guards, v values) (int, error) {
		n, err := exec(ctx, tx, s.writing, v)
		if err != nil && t.home.Member == "ONLINE" && t.errors(err) == dialect.Unknown {
			// The user of tx may lack the right to read whether the server is ONLINE.
			n, err = exec(ctx, tx, s.anywhere, v)
		}
		return int(n), err
	})
}

// guardParts has send pin the rows of c, by one statement or, where a message has no room for all, by several. It
// reports whether all are pinned.
func (t *Table) guardParts(c Claim, send func(guards, values) (int, error)) (pinned bool, err error) {
	s, v := t.guardsOf(c)
	found := 0
	for part := range v.parts(t.room.of(v.len())) {
		n, err := send(s, part)
		if err != nil {
			_ = t.hasRefused(part.len(), err) // the user's next transaction fares better
			return false, err
		}
		found += n
	}
	return found == c.count(), nil
}

func (t *Table) guardByLocking(ctx context.Context, tx Tx, c Claim) (pinned bool, err error) {
	return t.guardParts(c, func(s guards, v values) (found int, err error) {
		err = query(ctx, tx, s.locking, v, func(rows *sql.Rows) error { return rows.Scan(&found) })
		return found, err
	})
}

// Begin begins a transaction of the user's on a pool of the same kind of database.
func (t *Table) Begin(ctx context.Context, db *sql.DB, opts *sql.TxOptions) (*transaction.Tx, error) {
	return transaction.Pool{DB: db, Dialect: &t.dialect}.Begin(ctx, opts)
}

// Explain makes an [*Error] of an error that op, a statement in a transaction of the user's, has ended with under
// ctx. It returns nil for nil.
func (t *Table) Explain(ctx context.Context, op string, err error) error {
	return t.errors.explain(ctx, op, err)
}

// IsRefusedCommit reports whether err, of COMMIT of a transaction of the user's, means that the database refused it:
// it was not applied.
func (t *Table) IsRefusedCommit(err error) bool { return t.errors.isRefusedCommit(err) }
