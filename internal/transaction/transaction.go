// Package transaction has transactions that leave no connection behind in an open one.
//
// database/sql puts a connection back into the pool after COMMIT and ROLLBACK, whatever the server has answered. A
// node of Galera that has lost its quorum refuses both (error 1047) and leaves the transaction open. Then the next
// user of the connection gets error 1568, or, worse, runs statements in that transaction that succeed and are never
// committed. So a connection whose transaction may not be over is closed here.
package transaction

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// A Pool is a pool of connections to a database of the dialect.
type Pool struct {
	DB      *sql.DB
	Dialect *sqltext.Dialect
	// Gate, unless it is nil, keeps a connection free for renewals.
	Gate *Gate
}

// maxClosed limits how many closed connections one call passes over. It does not depend on what the pool says,
// because there may be another pool behind it, as pgxpool is: see stdlib.OpenDBFromPool.
const maxClosed = 100

// freely is how many of them it passes over without a pause. A server or a proxy that closes each new connection, as
// one does that is shut down, must not be asked for a hundred at once.
const freely = 20

// pause is that time. All of them take less than a batch has, so that the caller gets the last error.
const pause = 20 * time.Millisecond

// A Try sends a statement, or a message, on a connection of a pool. It passes over connections that turn out to be
// closed by the server, or to be still inside another transaction, and has the statement sent on the next one:
//
//	try := pool.Try()
//	for try.Next(ctx) {
//		try.Err = send(ctx, try.Conn)
//	}
//
// So it must be safe to send it again. The loop must not be left before Next has returned false. Then Err is the last
// error, or nil.
//
// database/sql does the same for a connection that its driver calls bad. lib/pq does that for any connection that
// breaks, pgx for none that has broken within the last second.
type Try struct {
	Conn *sql.Conn
	// Err is set in the loop, to what the statement ended with. A second error of a new connection ends the loop.
	Err error
	// Resent reports whether a statement was sent before that may have been applied.
	Resent bool

	pool    Pool
	pass    pass   // from the first Next on
	most    int    // connections of the pool
	outside string // is sent first, unless it is ""
	whole   bool   // what is sent is a transaction by itself
	begins  bool   // Begin: the connection is given back with the transaction
	n       int    // how many connections were tried
	stuck   int    // how many of them may be stuck
}

// Try returns a Try for a statement that may be repeated.
func (p Pool) Try() Try {
	stats := p.DB.Stats()
	return Try{pool: p, stuck: stats.OpenConnections, most: stats.MaxOpenConnections}
}

// TryOutside is Try for statements that must be committed by themselves. A connection on which the application has
// left a transaction open, which would undo them, is passed over.
func (p Pool) TryOutside() Try {
	try := p.Try()
	if !p.discardsOpen() {
		try.outside = p.Dialect.Outside
	}
	return try
}

// TryWhole is Try for what is a transaction by itself: one statement, or one message with BEGIN and COMMIT in it. If
// it fails, its transaction is not left open: it is rolled back, or the connection is closed.
func (p Pool) TryWhole() Try {
	try := p.Try()
	try.whole = true
	return try
}

// discardsOpen reports whether database/sql gives out no connection in an open transaction: pgx asks its connections
// for that.
func (p Pool) discardsOpen() bool {
	driver := reflect.TypeOf(p.DB.Driver())
	return driver != nil && driver.Kind() == reflect.Pointer && strings.HasPrefix(driver.Elem().PkgPath(), "github.com/jackc/pgx/")
}

// On returns what send returns, which sends a statement, or several, on a connection of the pool, as a [Try] has them
// sent.
func On[T any](ctx context.Context, p Pool, send func(*sql.Conn) (T, error)) (value T, err error) {
	try := p.Try()
	for try.Next(ctx) {
		value, try.Err = send(try.Conn)
	}
	return value, try.Err
}

// Next reports whether the statement is to be sent, on Conn.
func (t *Try) Next(ctx context.Context) bool {
	if t.n == 0 {
		if t.pass, t.Err = t.pool.Gate.enter(ctx, t.most); t.Err != nil {
			return false
		}
	}
	for t.n == 0 || t.again(ctx) {
		t.n++
		// A new connection that is closed before it is one, as MySQL does with a client that has no processor for
		// connect_timeout, is asked for once more.
		if t.Conn, t.Err = t.pool.DB.Conn(ctx); t.Err != nil && t.pool.Dialect.Classify(t.Err) == sqltext.Closed && ctx.Err() == nil {
			t.Conn, t.Err = t.pool.DB.Conn(ctx)
		}
		if t.Err != nil {
			break
		}
		if t.outside == "" {
			return true
		}
		_, err := t.Conn.ExecContext(ctx, t.outside)
		if class := t.pool.Dialect.Classify(err); class != sqltext.Stuck && class != sqltext.Closed {
			return true // if it has failed for another reason, the statement fails as well
		}
		t.Err = err
	}
	if !t.begins || t.Err != nil {
		t.pass.leave()
	}
	return false
}

// again gives the connection back, and reports whether to try another one.
func (t *Try) again(ctx context.Context) bool {
	d := t.pool.Dialect
	if !t.begins {
		if t.Err == nil && d.WarnsUnreplicated {
			t.Err = replicated(ctx, t.Conn)
		}
		giveBack(t.Conn, t.Err == nil || t.isUsable(ctx))
	}
	if t.Err == nil {
		return false
	}
	class := d.Classify(t.Err)
	passOver := class == sqltext.Stuck && t.n <= t.stuck || class == sqltext.Closed && t.n <= max(t.stuck, maxClosed)
	if !passOver || ctx.Err() != nil || t.n > max(t.stuck, freely) && !bounded.Sleep(ctx, pause) {
		return false
	}
	t.Resent = t.Resent || class == sqltext.Closed
	return true
}

// isUsable reports whether the connection can be used again after Err.
func (t *Try) isUsable(ctx context.Context) bool {
	class := t.pool.Dialect.Classify(t.Err)
	if isReadOnly(t.pool.Dialect, t.Err) {
		return false
	}
	if !t.whole {
		return class != sqltext.Stuck && class != sqltext.Closed && class != sqltext.TooLarge
	}
	return t.pool.Dialect.IsOver(t.Err) || isStopped(class) && rolledBack(ctx, t.Conn)
}

// isReadOnly reports whether the server or the session has refused to write. Then the connection is closed, for the next one
// may lead elsewhere: a cluster's former primary keeps its connections, and so would the pool. (rejectReadOnly of
// go-sql-driver does this, too, and returns driver.ErrBadConn, which does not say why.) A database in memory would be gone.
func isReadOnly(d *sqltext.Dialect, err error) bool {
	return err != nil && !d.Embedded && d.Classify(err) == sqltext.ReadOnly
}

// isStopped reports whether the server has refused a statement of a message, and left its transaction open.
func isStopped(class sqltext.Class) bool { return class == sqltext.Blocked || class == sqltext.Refused }

// rolledBack ends the transaction of a message whose statement was refused, or has waited for a row in vain, and
// reports whether it is over. Lost races end the transaction by themselves.
func rolledBack(ctx context.Context, conn *sql.Conn) bool {
	_, err := conn.ExecContext(ctx, "ROLLBACK")
	return err == nil
}

// giveBack gives a connection back to its pool, or closes it.
func giveBack(conn *sql.Conn, usable bool) {
	if !usable {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // has the pool close it
	}
	_ = conn.Close() // the error of the statement or the transaction says more
}

// A Tx is a transaction with the connection that it has to itself. End it with Commit or Rollback; as with [sql.Tx],
// what comes second returns sql.ErrTxDone.
type Tx struct {
	*sql.Tx

	ctx     context.Context //nolint:containedctx // that of the transaction, as sql.Tx has it
	conn    *sql.Conn
	pass    pass
	dialect *sqltext.Dialect
	ending  atomic.Bool // Commit or Rollback was called
	writes  bool        // the caller has not asked for a transaction that is read-only
	refused bool        // see isReadOnly
}

// Begin begins a transaction. Like a [Try] it passes over connections that turn out to be closed, and over those that
// are still inside another transaction.
func (p Pool) Begin(ctx context.Context, opts *sql.TxOptions) (begun *Tx, err error) {
	try := p.Try()
	try.begins = true
	for try.Next(ctx) {
		tx, err := try.Conn.BeginTx(ctx, opts)
		if try.Err = err; err != nil {
			giveBack(try.Conn, p.Dialect.Embedded)
			continue
		}
		begun = &Tx{Tx: tx, ctx: ctx, conn: try.Conn, pass: try.pass, dialect: p.Dialect, writes: opts == nil || !opts.ReadOnly}
	}
	return begun, try.Err
}

// Run runs fn in a transaction and commits that, unless fn fails: once more, in another transaction, if the connection
// was closed. So it must be safe to run it again. resent reports whether a COMMIT was sent before that may have been
// applied.
func (p Pool) Run(ctx context.Context, opts *sql.TxOptions, fn func(*Tx) error) (resent bool, err error) {
	resent, err = p.runOnce(ctx, opts, fn)
	if err == nil || p.Dialect.Classify(err) != sqltext.Closed || ctx.Err() != nil {
		return false, err
	}
	_, err = p.runOnce(ctx, opts, fn)
	return resent, err
}

// runOnce reports whether it has sent COMMIT.
func (p Pool) runOnce(ctx context.Context, opts *sql.TxOptions, fn func(*Tx) error) (committed bool, err error) {
	tx, err := p.Begin(ctx, opts)
	if err != nil {
		return false, err
	}
	if err := fn(tx); err != nil {
		_ = tx.Abort(err) // a broken connection does that by itself; err says more
		return false, err
	}
	return true, tx.Commit()
}

// Commit commits the transaction. It returns an error also if the server has committed it, and has stopped waiting
// for its synchronous standby: see [ErrUnreplicated].
func (t *Tx) Commit() error {
	return t.end(func() error {
		err := t.Tx.Commit()
		if err == nil && t.dialect.WarnsUnreplicated {
			err = replicated(t.ctx, t.conn)
		}
		return err
	})
}

// Rollback rolls the transaction back.
func (t *Tx) Rollback() error { return t.end(t.Tx.Rollback) }

// Abort is Rollback after an error of a statement. One that was refused since the caller wants the transaction to be
// read-only says nothing about the server.
func (t *Tx) Abort(err error) error {
	return t.end(func() error {
		t.refused = t.writes && isReadOnly(t.dialect, err)
		return t.Tx.Rollback()
	})
}

// end runs Commit or Rollback, and gives the connection back. If the end of the context has rolled the transaction
// back before, it is not known with what success.
func (t *Tx) end(run func() error) error {
	if t.ending.Swap(true) {
		return sql.ErrTxDone // Close of the connection would wait for the first call
	}
	err := run()
	usable := (err == nil || t.dialect.IsOver(err)) && !t.refused
	if errors.Is(err, sql.ErrTxDone) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		go t.giveBack(usable) // it waits for that rollback, and the caller need not
		return err
	}
	t.giveBack(usable)
	return err
}

func (t *Tx) giveBack(usable bool) {
	giveBack(t.conn, usable)
	t.pass.leave()
}

// ErrUnreplicated is why it is not known whether what was committed outlasts a failover. PostgreSQL answers a COMMIT
// whose wait for the synchronous standby was cancelled with success, and a warning.
var ErrUnreplicated = errors.New("the server has stopped waiting for its synchronous standby: a failover may undo what was committed")

// replicated returns ErrUnreplicated, or nil, for a conn on which something was just committed. Only the pools of Open see the
// warning. But lib/pq has the server cancel its wait when ctx ends, whatever the pool: then no success counts.
func replicated(ctx context.Context, conn *sql.Conn) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := conn.Raw(askReplicated); errors.Is(err, ErrUnreplicated) {
		return err
	}
	return nil
}

// askReplicated returns ErrUnreplicated if c, a connection of a driver, has seen the warning.
func askReplicated(c any) error {
	if asked, ok := c.(interface{ Unreplicated() bool }); ok && asked.Unreplicated() {
		return ErrUnreplicated
	}
	return nil
}

// A Gate keeps a connection of a pool free for renewals: a lease that is not renewed in time is lost, and
// everything else can wait. Other statements wait at the gate while they would take the last connection, so none of
// them waits in the pool, which gives a free connection to any of those that wait there.
//
// It counts what sqllock sends. What the application does on the same pool it does not see. If the pool has one
// connection, a renewal waits behind one statement at most.
type Gate struct {
	mu      sync.Mutex
	most    int             // connections that the pool may have, or 0 for as many as it needs
	others  int             // statements that have passed the gate and are no renewals
	kept    int             // connections that are not given back for long: see Keep
	urgent  int             // renewals that are in flight, or wait for their connection
	waiting []chan struct{} // closed when its statement may pass
}

// gates has the gate of each pool: several tables may be over one.
var gates = struct {
	mu sync.Mutex
	of map[weak.Pointer[sql.DB]]*Gate
}{of: make(map[weak.Pointer[sql.DB]]*Gate)}

// GateOf returns the gate of a pool.
func GateOf(db *sql.DB) *Gate {
	gates.mu.Lock()
	defer gates.mu.Unlock()
	pool := weak.Make(db)
	g := gates.of[pool]
	if g == nil {
		g = new(Gate)
		gates.of[pool] = g
		runtime.AddCleanup(db, forget, pool)
	}
	return g
}

func forget(pool weak.Pointer[sql.DB]) {
	gates.mu.Lock()
	defer gates.mu.Unlock()
	delete(gates.of, pool)
}

// urgency is the key of the value that [Urgent] gives a context.
type urgency struct{}

// Urgent returns a context for the statements of a renewal: they do not wait at a [Gate].
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgency{}, true) }

// Keep counts n more connections that are not given back for long, unless there would be more than limit. n may be
// negative.
func (g *Gate) Keep(n, limit int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n > 0 && g.kept+n > limit {
		return false
	}
	g.kept += n
	g.admit()
	return true
}

// A pass is that of a statement, until it has given its connection back.
type pass struct {
	gate   *Gate // nil for a pool without one
	urgent bool
}

// enter waits until the statement may take a connection of a pool that has most of them, or as many as it needs if
// that is 0. It returns ctx's error if that ends first.
func (g *Gate) enter(ctx context.Context, most int) (pass, error) {
	if g == nil {
		return pass{}, nil
	}
	p := pass{gate: g, urgent: ctx.Value(urgency{}) != nil}
	g.mu.Lock()
	g.most = most
	if p.urgent {
		g.urgent++
		g.mu.Unlock()
		return p, nil
	}
	if len(g.waiting) == 0 && g.hasRoom() {
		g.others++
		g.mu.Unlock()
		return p, nil
	}
	passes := make(chan struct{})
	g.waiting = append(g.waiting, passes)
	g.mu.Unlock()
	select {
	case <-passes:
		return p, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, passes); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	} else { // both at once
		g.others--
		g.admit()
	}
	return pass{}, ctx.Err()
}

// hasRoom reports whether another statement leaves a connection to renewals. One of them may always pass.
func (g *Gate) hasRoom() bool {
	return g.most <= 0 || g.others == 0 || g.kept+g.others+1+max(1, g.urgent) <= g.most
}

// admit has those that wait pass as long as there is room.
func (g *Gate) admit() {
	for len(g.waiting) > 0 && g.hasRoom() {
		close(g.waiting[0])
		g.waiting = slices.Delete(g.waiting, 0, 1)
		g.others++
	}
}

// leave is called when the connection was given back.
func (p pass) leave() {
	g := p.gate
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.urgent {
		g.urgent--
	} else {
		g.others--
	}
	if len(g.waiting) > 0 {
		g.admit()
	}
}
