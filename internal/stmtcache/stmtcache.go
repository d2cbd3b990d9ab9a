// Package stmtcache keeps prepared statements, so that the server parses a text once for each
// connection, and not once for each execution. It is for drivers that do not do so by
// themselves: lib/pq and go-sql-driver/mysql.
package stmtcache

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
)

// A Cache runs texts as prepared statements that it keeps. All methods are safe for
// concurrent use.
//
// A text that cannot be prepared, or not now, is sent as it is: what is wrong with it
// shows there, and no caller waits for another's context.
type Cache struct {
	db *sqlx.DB
	// texts are those that are prepared. All others are sent as they are: one that is
	// made anew for each call, with as many placeholders as it needs, would stay for ever.
	texts  map[string]*entry
	wanted atomic.Bool // a quick look: whether a transaction has missed some texts
}

// New returns a cache for these texts of the pool db. All other texts are sent as they are.
// Empty texts are left out.
func New(db *sqlx.DB, texts ...string) *Cache {
	c := &Cache{db: db, texts: make(map[string]*entry, len(texts))}
	for _, text := range texts {
		if text != "" {
			c.texts[text] = &entry{text: text}
		}
	}
	return c
}

// On returns what runs texts in tx, which is one of the same pool, or on the pool itself
// if it is nil.
func (c *Cache) On(tx *sqlx.Tx) sqlx.ExtContext {
	if tx == nil {
		return executor{ExtContext: c.db, cache: c}
	}
	return executor{ExtContext: tx, cache: c, tx: tx}
}

// Begin begins a transaction. Before, it prepares what earlier ones have missed: in a
// transaction nothing can be prepared for longer than it lasts, and to take a second
// connection while it holds one might be to wait for itself.
func (c *Cache) Begin(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, error) {
	if c.wanted.Load() && c.wanted.Swap(false) {
		for _, t := range c.texts {
			if !t.wanted.Swap(false) {
				continue
			}
			if k := t.prepare(ctx, c.db); k != nil {
				_ = k.release() // it stays; if close came between, it has no say here
			}
		}
	}
	return c.db.BeginTxx(ctx, opts)
}

// Close closes all statements; those that are in use, when they no longer are. Texts that
// come later are prepared anew.
//
// database/sql has no context for this, and holds up the whole pool until drivers have
// told the server; lib/pq and pgx wait for its answer, however long. So it is for a
// database that has just answered.
func (c *Cache) Close() error {
	var errs []error
	for _, t := range c.texts {
		errs = append(errs, t.forget())
	}
	return errors.Join(errs...)
}

// Keeps prepares a text for the pool if need be, and reports whether it is prepared.
func (c *Cache) Keeps(ctx context.Context, text string) bool {
	k := c.find(ctx, nil, text)
	if k == nil {
		return false
	}
	_ = k.release() // it stays; if Close came between, the next use prepares it again
	return true
}

// find returns the statement of a text, which the caller releases, or nil if it is to be
// sent as it is.
func (c *Cache) find(ctx context.Context, tx *sqlx.Tx, text string) *stmt {
	t := c.texts[text]
	switch {
	case t == nil:
		return nil
	case tx == nil:
		return t.prepare(ctx, c.db)
	}
	k := t.take()
	if k == nil {
		t.wanted.Store(true)
		c.wanted.Store(true)
	}
	return k
}

// An entry is a text that is prepared when it is first used.
type entry struct {
	text   string
	wanted atomic.Bool // by a transaction that found it unprepared

	mu        sync.Mutex
	kept      *stmt // nil if it is not prepared
	preparing bool
	forgotten int // how often
}

// A stmt is closed by its last user. While it is kept, that is one use.
type stmt struct {
	of       *entry
	prepared *sqlx.Stmt
	users    int // guarded by of.mu
}

// take returns the statement if there is one. The caller releases it.
func (t *entry) take() *stmt {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept != nil {
		t.kept.users++
	}
	return t.kept
}

// prepare returns the statement, and prepares it if need be. It returns nil if that
// fails, or while another caller prepares it. The caller releases it.
func (t *entry) prepare(ctx context.Context, db *sqlx.DB) *stmt {
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

	prepared, err := db.PreparexContext(ctx, t.text)

	t.mu.Lock()
	defer t.mu.Unlock()
	t.preparing = false
	if err != nil {
		return nil
	}
	k := &stmt{of: t, prepared: prepared, users: 1}
	if t.forgotten == forgotten { // else close has come between
		t.kept, k.users = k, 2
	}
	return k
}

// forget keeps the statement no longer.
func (t *entry) forget() error {
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

func (s *stmt) release() error {
	s.of.mu.Lock()
	s.users--
	unused := s.users == 0
	s.of.mu.Unlock()
	if unused {
		return s.prepared.Close()
	}
	return nil
}

// done releases the statement after a use that ended with err.
func (s *stmt) done(err error) {
	if isStale(err) {
		s.of.mu.Lock()
		current := s.of.kept == s
		s.of.mu.Unlock()
		if current { // if not, another caller was faster
			_ = s.of.forget() // err says more
		}
	}
	_ = s.release() // the answer is there
}

// isStale reports whether PostgreSQL no longer runs a prepared statement whose text it would
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

// An executor is a pool or a transaction whose statements are prepared.
type executor struct {
	sqlx.ExtContext // for texts as they are
	cache           *Cache
	tx              *sqlx.Tx // nil on a pool
}

// in returns the statement as the transaction runs it, if there is one.
func (e executor) in(ctx context.Context, k *stmt) *sqlx.Stmt {
	if e.tx == nil {
		return k.prepared
	}
	return e.tx.StmtxContext(ctx, k.prepared) // closed when the transaction ends
}

// QueryContext implements sqlx.QueryerContext.
func (e executor) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	k := e.cache.find(ctx, e.tx, text)
	if k == nil {
		return e.ExtContext.QueryContext(ctx, text, args...)
	}
	rows, err := e.in(ctx, k).QueryContext(ctx, args...)
	k.done(err)
	return rows, err
}

// QueryxContext implements sqlx.QueryerContext.
func (e executor) QueryxContext(ctx context.Context, text string, args ...any) (*sqlx.Rows, error) {
	k := e.cache.find(ctx, e.tx, text)
	if k == nil {
		return e.ExtContext.QueryxContext(ctx, text, args...)
	}
	rows, err := e.in(ctx, k).QueryxContext(ctx, args...) //nolint:sqlclosecheck // the statement is kept
	k.done(err)
	return rows, err
}

// QueryRowxContext implements sqlx.QueryerContext.
func (e executor) QueryRowxContext(ctx context.Context, text string, args ...any) *sqlx.Row {
	k := e.cache.find(ctx, e.tx, text)
	if k == nil {
		return e.ExtContext.QueryRowxContext(ctx, text, args...)
	}
	row := e.in(ctx, k).QueryRowxContext(ctx, args...) //nolint:sqlclosecheck // the statement is kept
	k.done(row.Err())
	return row
}

// ExecContext implements sqlx.ExecerContext.
func (e executor) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	k := e.cache.find(ctx, e.tx, text)
	if k == nil {
		return e.ExtContext.ExecContext(ctx, text, args...)
	}
	result, err := e.in(ctx, k).ExecContext(ctx, args...)
	k.done(err)
	return result, err
}
