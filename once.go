package sqllock

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/jmoiron/sqlx"
)

// An executor is what one statement runs on: a pool, a transaction or a connection.
type executor interface {
	sqlx.QueryerContext
	sqlx.ExecerContext
}

// once runs fn, which sends s, a statement that takes effect once, with the parameters that it
// is given. resent says that the statement may have been sent before: then a result of 0 rows
// does not say who did its work.
//
// database/sql sends a statement again on another connection if the driver reports the first
// one as bad. Drivers should do so only for what the server cannot have seen, but lib/pq also
// does it for a connection that breaks while it waits for the answer. On a connection that was
// taken from the pool database/sql sends a statement once, so here the second time is ours.
func (r *Repository) once(ctx context.Context, s statement, p params, fn func(executor, params) error) (resent bool, err error) {
	if r.prepared != nil && r.prepared.Keeps(ctx, s.text) {
		return r.oncePrepared(p, fn)
	}
	conn, err := r.db.Connx(ctx)
	if err != nil {
		return false, err
	}
	err = fn(conn, p)
	_ = conn.Close() // goes back to the pool; err says more
	if errors.Is(err, driver.ErrBadConn) {
		return true, fn(r.db, p)
	}
	return false, err
}

// oncePrepared is once for a statement that is prepared, and belongs to the pool: it counts how
// often database/sql converts an argument for the driver. (Of one that is not prepared it may
// convert the arguments twice and send it once: see driver.ErrSkip.)
func (r *Repository) oncePrepared(p params, fn func(executor, params) error) (resent bool, err error) {
	p.sends = new(int)
	err = fn(r.on(nil), p)
	return *p.sends > 1, err
}

// A countedText is an argument that counts how often it is sent.
type countedText struct {
	text  string
	sends *int
}

// Value implements driver.Valuer.
func (c countedText) Value() (driver.Value, error) {
	*c.sends++
	return c.text, nil
}

// counted returns text as an argument, which is counted if p asks for it.
func (p params) counted(text string) any {
	if p.sends == nil {
		return text
	}
	return countedText{text, p.sends}
}
