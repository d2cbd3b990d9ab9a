package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
)

// prepared runs texts as prepared statements that are kept, so that the server parses
// them once for each connection, and not once for each execution. It is for drivers that
// do not do so by themselves. It is safe for concurrent use.
//
// A text that cannot be prepared, or not now, is sent as it is: what is wrong with it
// shows there, and nobody waits for another's context.
type prepared struct {
	db *sqlx.DB
	// texts are those that are prepared. All others are sent as they are: one that is
	// made anew for each call, with as many placeholders as it needs, would stay for ever.
	texts  map[string]*preparable
	wanted atomic.Bool // a quick look: whether a transaction has missed some
}

// newPrepared returns a prepared for these texts. Without any it sends everything as it
// is. The empty text is no statement: see statements.
func newPrepared(db *sqlx.DB, texts ...string) *prepared {
	p := &prepared{db: db, texts: make(map[string]*preparable, len(texts))}
	for _, text := range texts {
		if text != "" {
			p.texts[text] = &preparable{text: text}
		}
	}
	return p
}

// on returns what runs texts in tx, which is one of the same pool, or on the pool itself
// if it is nil.
func (p *prepared) on(tx *sqlx.Tx) sqlx.ExtContext {
	if tx == nil {
		return preparing{ExtContext: p.db, prepared: p}
	}
	return preparing{ExtContext: tx, prepared: p, tx: tx}
}

// begin begins a transaction. Before, it prepares what earlier ones have missed: in a
// transaction nothing can be prepared for longer than it lasts, and to take a second
// connection while it holds one might be to wait for itself.
func (p *prepared) begin(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, error) {
	if p.wanted.Load() && p.wanted.Swap(false) {
		for _, t := range p.texts {
			if !t.wanted.Swap(false) {
				continue
			}
			if k := t.prepare(ctx, p.db); k != nil {
				_ = k.release() // it stays; if close came between, it has no say here
			}
		}
	}
	return p.db.BeginTxx(ctx, opts)
}

// close closes all statements; those that are in use, when they no longer are. Texts that
// come later are prepared anew.
//
// database/sql has no context for this, and holds up the whole pool until drivers have
// told the server; lib/pq and pgx wait for its answer, however long. So it is for a
// database that has just answered.
func (p *prepared) close() error {
	var errs []error
	for _, t := range p.texts {
		errs = append(errs, t.forget())
	}
	return errors.Join(errs...)
}

// find returns the statement of a text, which the caller releases, or nil if it is to be
// sent as it is.
func (p *prepared) find(ctx context.Context, tx *sqlx.Tx, text string) *kept {
	t := p.texts[text]
	switch {
	case t == nil:
		return nil
	case tx == nil:
		return t.prepare(ctx, p.db)
	}
	k := t.take()
	if k == nil {
		t.wanted.Store(true)
		p.wanted.Store(true)
	}
	return k
}

// A preparable is a text that is prepared when it is first used.
type preparable struct {
	text   string
	wanted atomic.Bool // by a transaction that found it unprepared

	mu        sync.Mutex
	kept      *kept // nil if it is not prepared
	preparing bool
	forgotten int // how often
}

// A kept statement is closed by the last who uses it. While it is kept, that is one use.
type kept struct {
	of    *preparable
	stmt  *sqlx.Stmt
	users int // guarded by of.mu
}

// take returns the statement if there is one. The caller releases it.
func (t *preparable) take() *kept {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept != nil {
		t.kept.users++
	}
	return t.kept
}

// prepare returns the statement, and prepares it if need be. It returns nil if that
// fails, or while somebody else is at it. The caller releases it.
func (t *preparable) prepare(ctx context.Context, db *sqlx.DB) *kept {
	t.mu.Lock()
	if t.kept != nil || t.preparing {
		if t.kept != nil {
			t.kept.users++
		}
		defer t.mu.Unlock()
		return t.kept
	}
	t.preparing = true
	forgotten := t.forgotten
	t.mu.Unlock()

	stmt, err := db.PreparexContext(ctx, t.text)

	t.mu.Lock()
	defer t.mu.Unlock()
	t.preparing = false
	if err != nil {
		return nil
	}
	k := &kept{of: t, stmt: stmt, users: 1}
	if t.forgotten == forgotten { // else close has come between
		t.kept, k.users = k, 2
	}
	return k
}

// forget keeps the statement no longer.
func (t *preparable) forget() error {
	t.mu.Lock()
	k := t.kept
	t.kept = nil
	t.forgotten++
	t.mu.Unlock()
	if k == nil {
		return nil
	}
	return k.release()
}

func (k *kept) release() error {
	k.of.mu.Lock()
	k.users--
	unused := k.users == 0
	k.of.mu.Unlock()
	if unused {
		return k.stmt.Close()
	}
	return nil
}

// done releases the statement after a use that ended with err.
func (k *kept) done(err error) {
	if isStale(err) {
		k.of.mu.Lock()
		current := k.of.kept == k
		k.of.mu.Unlock()
		if current { // if not, somebody else was faster
			_ = k.of.forget() // err says more
		}
	}
	_ = k.release() // the answer is there
}

// isStale tells whether PostgreSQL no longer runs a prepared statement whose text it would
// run. Of other connections it is not known, so none of them keeps it.
func isStale(err error) bool {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return false
	}
	switch state.SQLState() {
	case "26000", // invalid_sql_statement_name: DISCARD ALL, DEALLOCATE ALL
		"0A000": // feature_not_supported: the table was altered, and the result with it
		return true
	default:
		return false
	}
}

// preparing is a pool or a transaction whose statements are prepared.
type preparing struct {
	sqlx.ExtContext // for texts as they are
	prepared        *prepared
	tx              *sqlx.Tx // nil on a pool
}

// in returns the statement as the transaction runs it, if there is one.
func (p preparing) in(ctx context.Context, k *kept) *sqlx.Stmt {
	if p.tx == nil {
		return k.stmt
	}
	return p.tx.StmtxContext(ctx, k.stmt) // closed when the transaction ends
}

// QueryContext implements sqlx.QueryerContext.
func (p preparing) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	k := p.prepared.find(ctx, p.tx, text)
	if k == nil {
		return p.ExtContext.QueryContext(ctx, text, args...)
	}
	rows, err := p.in(ctx, k).QueryContext(ctx, args...)
	k.done(err)
	return rows, err
}

// QueryxContext implements sqlx.QueryerContext.
func (p preparing) QueryxContext(ctx context.Context, text string, args ...any) (*sqlx.Rows, error) {
	k := p.prepared.find(ctx, p.tx, text)
	if k == nil {
		return p.ExtContext.QueryxContext(ctx, text, args...)
	}
	rows, err := p.in(ctx, k).QueryxContext(ctx, args...) //nolint:sqlclosecheck // the statement is kept
	k.done(err)
	return rows, err
}

// QueryRowxContext implements sqlx.QueryerContext.
func (p preparing) QueryRowxContext(ctx context.Context, text string, args ...any) *sqlx.Row {
	k := p.prepared.find(ctx, p.tx, text)
	if k == nil {
		return p.ExtContext.QueryRowxContext(ctx, text, args...)
	}
	row := p.in(ctx, k).QueryRowxContext(ctx, args...) //nolint:sqlclosecheck // the statement is kept
	k.done(row.Err())
	return row
}

// ExecContext implements sqlx.ExecerContext.
func (p preparing) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	k := p.prepared.find(ctx, p.tx, text)
	if k == nil {
		return p.ExtContext.ExecContext(ctx, text, args...)
	}
	result, err := p.in(ctx, k).ExecContext(ctx, args...)
	k.done(err)
	return result, err
}

// on returns what runs statements in tx, or on the pool if it is nil.
func (r *Repository) on(tx *sqlx.Tx) sqlx.ExtContext {
	switch {
	case r.prepared != nil:
		return r.prepared.on(tx)
	case tx != nil:
		return tx
	default:
		return r.db
	}
}

// begin begins a transaction.
func (r *Repository) begin(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, error) {
	if r.prepared != nil {
		return r.prepared.begin(ctx, opts)
	}
	return r.db.BeginTxx(ctx, opts)
}
