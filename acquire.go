package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"
)

// An Acquisition is the answer to an attempt to acquire.
type Acquisition struct {
	// Acquired says that the row carries the caller's holder now.
	Acquired bool
	// Row is what stands in the way where Acquired is false. It is zero if the
	// row went away in the meantime.
	Row Row
}

// Acquire inserts the row of key with the holder for ttl, or takes it over if it
// has expired or carries this very holder: a statement that is sent again after a
// lost race thus recognises its own row. It does not wait for a holder.
//
// An attempt that keeps losing races against others counts as not acquired. If
// the outcome is unknown (the connection broke, or ctx ended, while the
// transaction was being committed), Acquire returns the error and sees to it
// that no row is left behind: it deletes the row at once or, if the database
// cannot be reached, before the next acquisition of the key. After an error the
// holder must not be used again, for that deletion may come late.
func (r *Repository) Acquire(ctx context.Context, key, holder string, ttl time.Duration) (Acquisition, error) {
	p, err := r.params(key, holder, ttl)
	if err != nil {
		return Acquisition{}, err
	}
	if err := ctx.Err(); err != nil {
		return Acquisition{}, r.trouble(ctx, "acquire", key, err)
	}
	if err := r.clearAbandoned(ctx, key); err != nil {
		return Acquisition{}, err
	}
	var got Acquisition
	var unknown bool // whether the attempt may have been applied
	err = r.retryRaces(ctx, func() (err error) {
		got, unknown, err = r.attempt(ctx, p)
		return err
	})
	switch {
	case err == nil:
	case r.isRace(err) && ctx.Err() == nil:
		got = Acquisition{}
	default:
		if unknown {
			r.abandon(ctx, key, holder, ttl)
		}
		return Acquisition{}, r.trouble(ctx, "acquire", key, err)
	}
	if got.Acquired || got.Row != (Row{}) {
		return got, nil
	}
	got.Row, _, err = r.Peek(ctx, key, ttl)
	return got, err
}

// attempt sends the acquire statement once. unknown says that an error left it
// open whether the attempt was applied: a failed race never does.
func (r *Repository) attempt(ctx context.Context, p params) (got Acquisition, unknown bool, err error) {
	if r.isolation == Statement {
		got, err = r.upsert(ctx, r.db, p)
		return got, err != nil && !r.isRace(err), err
	}
	level := sql.LevelSerializable
	if r.isolation == ReadCommitted {
		level = sql.LevelReadCommitted
	}
	var committing bool
	err = r.inTransaction(ctx, level, func(tx *sqlx.Tx) (err error) {
		got, err = r.upsert(ctx, tx, p)
		committing = err == nil
		return err
	})
	return got, err != nil && committing && !r.isRace(err), err
}

// upsert runs the acquire statement and finds out who owns the row then.
func (r *Repository) upsert(ctx context.Context, db sqlx.ExtContext, p params) (Acquisition, error) {
	s := r.statements.acquire
	if r.dialect.ReturnsOwner {
		var owner string
		err := db.QueryRowxContext(ctx, s.text, s.args(p)...).Scan(&owner)
		if errors.Is(err, sql.ErrNoRows) {
			return Acquisition{}, nil
		}
		return Acquisition{Acquired: err == nil}, err
	}
	if _, err := db.ExecContext(ctx, s.text, s.args(p)...); err != nil {
		return Acquisition{}, err
	}
	row, _, err := r.peek(ctx, db, p)
	return Acquisition{Acquired: row.Holder == p.holder, Row: row}, err
}

// inTransaction runs fn in a transaction of its own and commits it, unless fn
// fails.
func (r *Repository) inTransaction(ctx context.Context, level sql.IsolationLevel, fn func(*sqlx.Tx) error) error {
	tx, err := r.db.BeginTxx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		// fn's error says more than that of a rollback, which a broken
		// connection does by itself.
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}
