// Package stmtcache caches prepared statements, so that the server parses a text once for
// each connection and not once for each execution. It is for drivers that do not do this
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

// A Cache prepares a fixed set of texts and keeps the prepared statements. All methods are
// safe for concurrent use.
//
// A text that cannot be prepared, or that another caller is just preparing, is sent
// unprepared. So an error shows when the text runs, and no caller waits for the context of
// another one.
type Cache struct {
	db *sqlx.DB
	// texts are the texts that are prepared. All others are sent unprepared: texts with a
	// varying number of placeholders would fill the cache.
	texts  map[string]*entry
	wanted atomic.Bool // true if a transaction has missed some texts
}

// New returns a cache of the given texts for the pool db. All other texts are sent
// unprepared. Empty texts are ignored.
func New(db *sqlx.DB, texts ...string) *Cache {
	c := &Cache{db: db, texts: make(map[string]*entry, len(texts))}
	for _, text := range texts {
		if text != "" {
			c.texts[text] = &entry{text: text}
		}
	}
	return c
}

// On returns an executor that runs texts in tx, or on the pool if tx is nil. tx must be a
// transaction of the same pool.
func (c *Cache) On(tx *sqlx.Tx) sqlx.ExtContext {
	if tx == nil {
		return executor{ExtContext: c.db, cache: c}
	}
	return executor{ExtContext: tx, cache: c, tx: tx}
}

// PrepareMissed prepares the texts that transactions have missed. Call it before a transaction
// is begun: a text cannot be prepared within one, since that would need a second connection,
// and waiting for one while holding another can be a deadlock.
func (c *Cache) PrepareMissed(ctx context.Context) {
	if !c.wanted.Load() || !c.wanted.Swap(false) {
		return
	}
	for _, t := range c.texts {
		if !t.wanted.Swap(false) {
			continue
		}
		if k := t.prepare(ctx, c.db); k != nil {
			_ = k.release() // the cache keeps it; an error of Close is not this caller's
		}
	}
}

// Close closes all statements; a statement in use is closed after its last use. The cache can
// be used again: texts are then prepared anew.
//
// Call it only if the database responds. database/sql has no context for closing statements
// and blocks the whole pool meanwhile; lib/pq and pgx wait without a limit for the server's
// response.
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
	_ = k.release() // the cache keeps it; after Close, the next use prepares it again
	return true
}

// find returns the statement of a text, or nil if the text must be sent unprepared. The
// caller releases the statement.
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

// An entry is a text, which is prepared at its first use.
type entry struct {
	text   string
	wanted atomic.Bool // by a transaction that has found it unprepared

	mu        sync.Mutex
	kept      *stmt // nil if it is not prepared
	preparing bool
	forgotten int // the number of calls of forget
}

// A stmt is closed by its last user. The cache itself counts as a user.
type stmt struct {
	of       *entry
	prepared *sqlx.Stmt
	users    int // guarded by of.mu
}

// take returns the statement, or nil. The caller releases it.
func (t *entry) take() *stmt {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept != nil {
		t.kept.users++
	}
	return t.kept
}

// prepare returns the statement and prepares it if necessary. It returns nil if that fails,
// or if another caller is preparing it. The caller releases it.
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
	if t.forgotten == forgotten { // otherwise Close was called meanwhile
		t.kept, k.users = k, 2
	}
	return k
}

// forget removes the statement from the cache.
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
		if current { // otherwise another caller has replaced it
			_ = s.of.forget() // err is reported
		}
	}
	_ = s.release() // the result does not depend on it
}

// isStale reports whether err means that PostgreSQL can no longer run the prepared statement,
// although it could run its text. This may be true for all connections, so the statement is
// prepared anew on all of them.
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
	sqlx.ExtContext // runs unprepared texts
	cache           *Cache
	tx              *sqlx.Tx // nil on a pool
}

// in returns the statement for use in the transaction, if there is one.
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
	rows, err := e.in(ctx, k).QueryxContext(ctx, args...) //nolint:sqlclosecheck // the cache closes the statement
	k.done(err)
	return rows, err
}

// QueryRowxContext implements sqlx.QueryerContext.
func (e executor) QueryRowxContext(ctx context.Context, text string, args ...any) *sqlx.Row {
	k := e.cache.find(ctx, e.tx, text)
	if k == nil {
		return e.ExtContext.QueryRowxContext(ctx, text, args...)
	}
	row := e.in(ctx, k).QueryRowxContext(ctx, args...) //nolint:sqlclosecheck // the cache closes the statement
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
