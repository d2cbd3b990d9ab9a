package simulation

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// An operation is a kind of message to the database.
type operation string

const (
	opConnect  operation = "connect"
	opBegin    operation = "BEGIN"
	opExec     operation = "exec"
	opQuery    operation = "query"
	opCommit   operation = "COMMIT"
	opRollback operation = "ROLLBACK"
)

// A conn is the client's end of a connection. A statement takes effect in one instant, between
// the time for which it and the time for which its answer are under way.
type conn struct {
	server     *session
	link       *link
	generation int // of the database, which a failover raises

	// applying excludes the caller, and a statement that arrives late.
	applying sync.Mutex
	tx       driver.Tx
	writes   bool // the transaction has changed something
	writer   bool // no other connection may write
	gone     bool // the server's end is closed

	// These are used by the caller alone, as database/sql ensures.
	inTx    bool
	broken  bool
	leaving bool // the server will notice later that the connection is gone
	shut    sync.Once
}

// IsValid implements driver.Validator.
func (c *conn) IsValid() bool { return !c.broken }

// Close implements driver.Conn.
func (c *conn) Close() error {
	if !c.leaving {
		c.closeServer()
	}
	return nil
}

// breakUp ends the connection for the client. The server notices later.
func (c *conn) breakUp(later time.Duration) {
	c.broken = true
	if later == 0 {
		c.closeServer()
		return
	}
	c.leaving = true
	c.link.world.after(later, c.closeServer)
}

// closeServer closes the server's end, which rolls back its transaction.
func (c *conn) closeServer() {
	c.shut.Do(func() {
		c.applying.Lock()
		defer c.applying.Unlock()
		c.gone = true
		c.letWrite()
		c.link.world.serve(func() { _ = c.server.close() })
		c.link.mu.Lock()
		c.link.open--
		c.link.mu.Unlock()
	})
}

// A message is one operation of a connection.
type message[R any] struct {
	op     operation
	what   string // for the history
	writes bool   // it may change a table
	run    func() (R, error)
}

// verb is how the text of a statement begins, or "".
func (m message[R]) verb() string {
	if m.op != opExec && m.op != opQuery {
		return ""
	}
	verb, _, _ := strings.Cut(m.what, " ")
	return verb
}

// send sends a message and returns its answer, as its fate allows.
func send[R any](ctx context.Context, c *conn, m message[R]) (R, error) {
	var none R
	if c.broken {
		return none, driver.ErrBadConn
	}
	l, f := c.link, c.link.fate(m.op, m.what)
	l.inFlight.Add(1)
	defer l.inFlight.Add(-1)
	late := f.fault == LateRequest
	if c.inTx && (m.op == opExec || m.op == opQuery) {
		// When the context of a transaction ends, database/sql waits for its statement with a
		// mutex. In a bubble that stops the clock, so the driver must return. For one that
		// would not, the statement arrives nevertheless.
		late = late || !l.watches
	} else {
		ctx = l.watched(ctx)
	}
	lost := func(err error) (R, error) {
		c.breakUp(f.orphanFor)
		l.note("%s: %v (%s)", m.what, err, f.fault)
		return none, err
	}
	if f.fault == LostRequest {
		return lost(l.hang(ctx))
	}
	due := time.Now().Add(f.before)
	if err := l.travel(ctx, f, f.before); err != nil {
		if late && ctx.Err() != nil && m.op != opBegin {
			c.broken, c.leaving = true, true
			l.world.after(time.Until(due), func() {
				l.note("%s: arrives late", m.what)
				if awaitWriter(context.Background(), c, m) == nil {
					_, _ = apply(c, m)
				}
				c.closeServer()
			})
			return none, err
		}
		return lost(err)
	}
	if f.fault == Broken && !f.applied {
		return lost(errReset)
	}
	if f.fault == BadConn && !f.applied {
		return lost(driver.ErrBadConn)
	}
	var answer R
	err := awaitWriter(ctx, c, m)
	if err == nil {
		answer, err = apply(c, m)
	}
	switch {
	case errors.Is(err, errReset):
		return lost(err)
	case err != nil: // it was refused, and the answer says so
	case f.fault == Broken:
		return lost(errReset)
	case f.fault == BadConn && m.op != opCommit: // database/sql tries no COMMIT twice
		return lost(driver.ErrBadConn)
	case f.fault == LostAnswer:
		return lost(l.hang(ctx))
	}
	if lostAnswer := l.travel(ctx, f, f.after); lostAnswer != nil {
		return lost(lostAnswer)
	}
	return answer, err
}

// apply applies a message.
func apply[R any](c *conn, m message[R]) (R, error) {
	c.applying.Lock()
	defer c.applying.Unlock()
	var none R
	w := c.link.world
	if c.gone || c.generation != w.currentGeneration() {
		c.letWrite()
		return none, errReset
	}
	var answer R
	var err error
	w.serve(func() { answer, err = m.run() })
	if m.op == opCommit || m.op == opRollback {
		c.tx = nil
	}
	c.link.note("%s%s", m.what, outcome(err))
	if err != nil {
		if c.tx == nil {
			c.letWrite()
		}
		return none, err
	}
	c.writes = c.writes || m.writes
	if c.tx == nil {
		defer c.letWrite()
	}
	if c.tx == nil && c.writes {
		c.writes = false
		if m.op != opRollback {
			w.observe(commit{by: c.link.process, client: c.link.client, statement: m.verb()})
		}
	}
	return answer, nil
}

func outcome(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// awaitWriter waits until no other connection writes, for as long as the world's busy_timeout
// says, unless m only reads. SQLite has one writer at a time; its own wait is in real time.
func awaitWriter[R any](ctx context.Context, c *conn, m message[R]) error {
	if !m.writes && (m.op != opBegin || c.link.deferred) || c.isWriter() {
		return nil
	}
	timer := time.NewTimer(c.link.world.plan.Busy)
	defer timer.Stop()
	defer c.link.world.noteSlowness(time.Now())
	select {
	case c.link.world.writer <- struct{}{}:
		return c.becomeWriter()
	default:
	}
	select {
	case c.link.world.writer <- struct{}{}:
		return c.becomeWriter()
	case <-timer.C:
		return busyError{}
	case <-c.link.dead:
		return errReset
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errReset, ctx.Err())
	}
}

// becomeWriter notes that this connection is the one that may write. Its end at the server may
// have been closed meanwhile.
func (c *conn) becomeWriter() error {
	c.applying.Lock()
	defer c.applying.Unlock()
	if c.gone {
		<-c.link.world.writer
		return errReset
	}
	c.writer = true
	return nil
}

func (c *conn) isWriter() bool {
	c.applying.Lock()
	defer c.applying.Unlock()
	return c.writer
}

// letWrite lets others write. c.applying is locked.
func (c *conn) letWrite() {
	if c.writer {
		c.writer = false
		<-c.link.world.writer
	}
}

// busyError is SQLITE_BUSY.
type busyError struct{}

func (busyError) Error() string { return "simulated: database is locked (SQLITE_BUSY)" }

// Code returns the number by which the dialect finds out what has happened.
func (busyError) Code() int { return 5 }

// Prepare implements driver.Conn. No statement is prepared.
func (*conn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	opts.Isolation = 0
	_, err := send(ctx, c, message[struct{}]{op: opBegin, what: "BEGIN", run: func() (_ struct{}, err error) {
		c.tx, err = c.server.begin(opts)
		return struct{}{}, err
	}})
	if err != nil {
		return nil, err
	}
	c.inTx = true
	return &transaction{c, ctx}, nil
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return send(ctx, c, message[driver.Result]{opExec, c.link.world.describe(query, args), isWrite(query), func() (driver.Result, error) {
		return c.server.exec(query, args)
	}})
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return send(ctx, c, message[driver.Rows]{opQuery, c.link.world.describe(query, args), isWrite(query), func() (driver.Rows, error) {
		return c.server.query(query, args)
	}})
}

// isWrite reports whether a statement may change a table.
func isWrite(query string) bool { return !strings.HasPrefix(strings.TrimSpace(query), "SELECT") }

type transaction struct {
	conn *conn
	ctx  context.Context //nolint:containedctx // the context of the transaction
}

func (t *transaction) Commit() error   { return t.end(opCommit, driver.Tx.Commit) }
func (t *transaction) Rollback() error { return t.end(opRollback, driver.Tx.Rollback) }

func (t *transaction) end(op operation, end func(driver.Tx) error) error {
	t.conn.inTx = false
	if op == opRollback && t.ctx.Err() != nil && !t.conn.broken {
		// database/sql rolls back by itself, and others wait for that with a mutex: see send.
		t.conn.breakUp(1 + t.conn.link.fate(op, string(op)).before)
		return driver.ErrBadConn
	}
	_, err := send(t.ctx, t.conn, message[struct{}]{op: op, what: string(op), run: func() (struct{}, error) {
		return struct{}{}, end(t.conn.tx)
	}})
	return err
}
