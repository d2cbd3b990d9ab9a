package locktable

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
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

// A Guardable is an open transaction of the user's in which [guards.Guard] pins rows: see [OverSQL] and [OverRows].
type Guardable interface {
	guard(ctx context.Context, g *guards, c Claim) (GuardResult, error)
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

// A GuardResult is what a guarded transaction found.
type GuardResult int

const (
	// NotHeld means that there is no such row, or that it has expired.
	NotHeld GuardResult = iota
	// Guarded means that the transaction has pinned the row.
	Guarded
	// StaleSnapshot means that the row is there, but that the transaction's snapshot is
	// older and does not show it.
	StaleSnapshot
)

// guards pin rows in transactions of the user's.
type guards struct {
	*database

	reads         *reads
	certification certification
}

// Guard pins the row inside tx, a transaction of the user's, if it carries the claim's holder.
func (g *guards) Guard(ctx context.Context, tx Guardable, c Claim) (GuardResult, error) {
	return tx.guard(ctx, g, c)
}

type overSQL struct{ tx Tx }

func (o overSQL) guard(ctx context.Context, g *guards, c Claim) (GuardResult, error) {
	return g.guarded(ctx, c, func(ctx context.Context) (bool, error) {
		return g.guard(ctx, o.tx, c)
	})
}

func (queryRow QueryRow) guard(ctx context.Context, g *guards, c Claim) (GuardResult, error) {
	if g.statements.Guards.Writing.Text != "" {
		return NotHeld, &dbcall.Error{Op: guarding.Op, Kind: dbcall.WrongTx, Err: errUncounted}
	}
	return g.guarded(ctx, c, func(ctx context.Context) (bool, error) {
		s, v := g.guardsOf(c)
		text, args, err := s.Locking.Bind(v)
		if err != nil {
			return false, err
		}
		found := 1 // that of one row counts nothing
		err = queryRow(ctx, text, args...).Scan(&found)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		return err == nil && found == c.Count(), err
	})
}

// guardsOf returns the statements that pin the rows of c, and their values.
func (g *guards) guardsOf(c Claim) (stmt.Guards, stmt.Values) {
	if c.IsJoint() {
		return g.statements.GuardsAll, stmt.Together(c.Each())
	}
	return g.statements.Guards, stmt.Values{Claim: c}
}

// errUncounted is why a transaction that only returns rows cannot be guarded.
var errUncounted = errors.New("on a cluster the row must be changed and the change counted, which a query for a row cannot do: use Lease.Guard")

// guarded runs pin, which pins the row inside a transaction of the user's.
func (g *guards) guarded(ctx context.Context, c Claim, pin func(context.Context) (bool, error)) (GuardResult, error) {
	if g.file.IsGone() {
		return NotHeld, nil
	}
	pinned, err := dbcall.CallInTime(ctx, g.server, guarding, c.TTL, pin, nil)
	switch {
	case dbcall.Is(err, dbcall.Race):
		// The row has changed since the snapshot of tx: by a renewal, after which tx may be tried again, or by
		// another holder.
		if held, unread := g.reads.IsHeld(ctx, c); unread == nil && !held {
			return NotHeld, nil
		}
		return NotHeld, err
	case dbcall.Is(err, dbcall.PinnedRow): // another statement has it locked for longer than the session waits
		return NotHeld, &dbcall.Error{Op: guarding.Op, Kind: dbcall.Failed, Err: errors.Unwrap(err)}
	case err != nil:
		return NotHeld, err
	case pinned:
		return Guarded, nil
	}
	// The transaction does not see the row. Is it gone, or newer than tx?
	held, err := g.reads.IsHeld(ctx, c)
	switch {
	case err != nil || !held:
		return NotHeld, err
	case g.dialect.LocksLatest:
		return NotHeld, &dbcall.Error{Op: guarding.Op, Kind: dbcall.Failed, Err: errNotThere}
	}
	return StaleSnapshot, nil
}

// errNotThere is why the row of a lease is not found in a transaction whose server reads what was committed last.
var errNotThere = errors.New("the transaction's server does not have the row of the lease: it lags behind, is not ONLINE in its replication group, or tx is in another database")

// guard pins the row: by a lock, or by a change where the server certifies what a transaction has changed. It asks
// the server of tx, which need not be the one that was asked at the start.
func (g *guards) guard(ctx context.Context, tx Tx, c Claim) (pinned bool, err error) {
	if g.statements.Guards.Writing.Text == "" {
		return g.guardByLocking(ctx, tx, c)
	}
	never := g.statements.Guards.Locking.Text == "" // can a lock do
	if !never && !g.certification.found.Load() && g.certification.isDue() {
		found, err := probe.AskCluster(ctx, tx, g.statements.ClusterVariables)
		switch {
		case g.server.IsNotNow(err):
			// The server may have rolled tx back. A statement that follows would then be a transaction of its own,
			// and its lock gone at once.
			g.certification.asked.Store(nil)
			return false, err
		case err != nil:
			return g.guardUnanswered(ctx, tx, c)
		}
		g.certification.know(found)
	}
	if never || g.certification.found.Load() {
		return g.guardByWriting(ctx, tx, c)
	}
	return g.guardByLocking(ctx, tx, c)
}

// guardUnanswered guards where the server has not answered what it is. If it answers the guard's own statement it
// cannot say, and is not asked again for a while.
func (g *guards) guardUnanswered(ctx context.Context, tx Tx, c Claim) (pinned bool, err error) {
	pinned, err = g.guardByLocking(ctx, tx, c)
	if err == nil {
		g.certification.know(probe.Cluster{})
	} else {
		g.certification.asked.Store(nil)
	}
	return pinned, err
}

func (g *guards) guardByWriting(ctx context.Context, tx Tx, c Claim) (pinned bool, err error) {
	// This count can be trusted on MySQL too: a row that is found is changed.
	return g.guardParts(c, func(s stmt.Guards, v stmt.Values) (int, error) {
		n, err := stmt.Exec(ctx, tx, s.Writing, v)
		if err != nil && g.home.Member == "ONLINE" && g.server.Classify(err) == sqltext.Unknown {
			// The user of tx may lack the right to read whether the server is ONLINE.
			n, err = stmt.Exec(ctx, tx, s.Anywhere, v)
		}
		return int(n), err
	})
}

// guardParts pins the rows of c by send: by one statement or, where a message has no room for all, by several. It
// reports whether all are pinned.
func (g *guards) guardParts(c Claim, send func(stmt.Guards, stmt.Values) (int, error)) (pinned bool, err error) {
	s, v := g.guardsOf(c)
	found := 0
	for part := range v.Parts(g.room.of(v.Len())) {
		n, err := send(s, part)
		if err != nil {
			_ = g.hasRefused(part.Len(), err) // the user's next transaction fares better
			return false, err
		}
		found += n
	}
	return found == c.Count(), nil
}

func (g *guards) guardByLocking(ctx context.Context, tx Tx, c Claim) (pinned bool, err error) {
	return g.guardParts(c, func(s stmt.Guards, v stmt.Values) (found int, err error) {
		err = stmt.Query(ctx, tx, s.Locking, v, func(rows *sql.Rows) error { return rows.Scan(&found) })
		return found, err
	})
}

// clusterEvery is how often a guard asks again whether its server certifies. A server may be
// restarted as a node of a cluster while the table is in use.
const clusterEvery = time.Minute

// certification remembers whether the server certifies transactions. Once it does, that stays: to
// write where it is not needed costs little.
type certification struct {
	found atomic.Bool
	asked atomic.Pointer[time.Time] // nil before the first time
}

// know notes what a server has said just now.
func (k *certification) know(c probe.Cluster) {
	if c.Certifies() {
		k.found.Store(true)
	}
	now := time.Now()
	k.asked.Store(&now)
}

// isDue reports whether the server must be asked, and by this caller: others that come before the
// answer do not ask again, unless it has never been asked.
func (k *certification) isDue() bool {
	asked := k.asked.Load()
	if asked == nil {
		return true
	}
	now := time.Now()
	return now.Sub(*asked) >= clusterEvery && k.asked.CompareAndSwap(asked, &now)
}

// Begin begins a transaction of the user's on a pool of the same kind of database.
func (g *guards) Begin(ctx context.Context, db *sql.DB, opts *sql.TxOptions) (*transaction.Tx, error) {
	return transaction.Pool{DB: db, Dialect: &g.dialect}.Begin(ctx, opts)
}

// IsRefusedCommit reports whether err, of COMMIT of a transaction of the user's, means that the database refused it:
// it was not applied.
func (g *guards) IsRefusedCommit(err error) bool { return g.server.IsRefusedCommit(err) }
