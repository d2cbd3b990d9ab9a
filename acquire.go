package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// An Acquisition is the answer to an attempt to acquire.
type Acquisition struct {
	// Acquired says that the row carries the caller's holder now.
	Acquired bool
	// Token is the fencing token of the acquisition: what [Lease.Token] of a lease
	// that is made of it returns.
	Token int64
	// Row is what stands in the way where Acquired is false. It is zero if the
	// row went away in the meantime.
	Row Row
}

// Acquire inserts the row of key with the holder for ttl, or takes it over if it
// has expired or carries this very holder: a statement that is sent again after a
// lost race thus recognises its own row. It does not wait for a holder.
//
// An attempt that keeps losing races against others, or meets a row that a
// transaction has pinned, counts as not acquired. If
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
	return r.acquire(ctx, p)
}

func (r *Repository) acquire(ctx context.Context, p params) (Acquisition, error) {
	if err := ctx.Err(); err != nil {
		return Acquisition{}, r.trouble(ctx, "acquire", p.name, err)
	}
	switch err := r.clearAbandoned(ctx, p.lockKey); {
	case errors.Is(err, ErrPinned): // the row is there and cannot be taken
		row, _, err := r.look(ctx, p)
		return Acquisition{Row: row}, err
	case err != nil:
		return Acquisition{}, err
	}
	got, unknown, err := r.attemptRepeatedly(ctx, p)
	if unknown {
		r.abandon(ctx, p)
	}
	switch {
	case err == nil:
	case r.isRefusal(err) && unknown && ctx.Err() == nil:
		return Acquisition{}, fmt.Errorf("%w: acquire %q: %w: %w", ErrDatabase, p.name, errOutcomeUnknown, err)
	case r.isRefusal(err) && ctx.Err() == nil:
		got = Acquisition{} // too late this time
	default:
		return Acquisition{}, r.trouble(ctx, "acquire", p.name, err)
	}
	if !got.Acquired && got.Row == (Row{}) {
		got.Row, _, err = r.look(ctx, p)
	}
	return got, err
}

// errOutcomeUnknown is why a holder must not be used for another attempt, although the
// database answers: the row of the last one is being deleted, maybe late.
var errOutcomeUnknown = errors.New("it is not known whether the row was written")

// attemptRepeatedly is attemptTogether until that succeeds, fails for good, or has lost
// maxRaces races. An attempt with an unknown outcome is the last one of its holder.
func (r *Repository) attemptRepeatedly(ctx context.Context, p params) (got Acquisition, unknown bool, err error) {
	for n := 0; ; n++ {
		got, unknown, err = r.attemptTogether(ctx, p)
		if unknown || !r.isRace(err) || n == maxRaces || !pauseAfterRace(ctx, n) {
			return got, unknown, err
		}
	}
}

// attempt sends the acquire statement once. unknown says that an error left it
// open whether the attempt was applied: a failed race never does.
func (r *Repository) attempt(ctx context.Context, p params) (got Acquisition, unknown bool, err error) {
	if r.looksFirst {
		row, ok, err := r.peek(ctx, r.on(nil), p)
		if err != nil || ok && !row.Expired() && row.Holder != p.holder {
			return Acquisition{Row: row}, false, err
		}
	}
	unknown, err = r.write(ctx, func(db sqlx.ExtContext) (written bool, err error) {
		got, written, err = r.upsert(ctx, db, p)
		return written, err
	})
	return got, unknown, err
}

// write runs upsert, in a transaction or on the pool as the isolation says. upsert tells
// whether anything was written before it failed.
func (r *Repository) write(ctx context.Context, upsert func(sqlx.ExtContext) (written bool, err error)) (unknown bool, err error) {
	if !r.inOwnTransaction() {
		written, err := upsert(r.on(nil))
		return err != nil && (written || !r.isRefusal(err)), err
	}
	var committing bool
	err = r.inTransaction(ctx, r.level(), func(tx sqlx.ExtContext) error {
		_, err := upsert(tx)
		committing = err == nil
		return err
	})
	return err != nil && committing && !r.isRefusal(err), err
}

func (r *Repository) level() sql.IsolationLevel {
	if r.isolation == ReadCommitted {
		return sql.LevelReadCommitted
	}
	return sql.LevelSerializable
}

// inOwnTransaction tells whether to acquire in an explicit transaction. Without
// round trips, one for two statements is cheaper than one for each.
func (r *Repository) inOwnTransaction() bool {
	return r.isolation != Statement || r.dialect.Embedded && r.statements.draw.text != ""
}

// upsert runs the acquire statement, and finds out who owns the row then. written
// says that the statement succeeded, whatever came after.
func (r *Repository) upsert(ctx context.Context, db sqlx.ExtContext, p params) (got Acquisition, written bool, err error) {
	s := r.statements.acquire
	if r.dialect.Returning {
		var number int64
		err = db.QueryRowxContext(ctx, s.text, s.args(p)...).Scan(&number)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return Acquisition{}, false, nil
		case err != nil:
			return Acquisition{}, false, err
		}
		if got.Token, err = r.tokenOf(number); err != nil {
			return Acquisition{}, true, err
		}
		got.Acquired = true
	} else {
		_, err = db.ExecContext(ctx, s.text, s.args(p)...)
	}
	switch {
	case err != nil:
		return Acquisition{}, false, err
	case r.statements.draw.text != "":
		got.Token, got.Acquired, err = r.draw(ctx, db, p)
	case !r.dialect.Returning:
		got.Row, _, err = r.peek(ctx, db, p)
		got.Acquired = got.Row.Holder == p.holder
	}
	return got, true, err
}

// inTransaction runs fn in a transaction of its own and commits it, unless fn
// fails.
func (r *Repository) inTransaction(ctx context.Context, level sql.IsolationLevel, fn func(sqlx.ExtContext) error) error {
	tx, err := r.begin(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return err
	}
	if err := fn(r.on(tx)); err != nil {
		// fn's error says more than that of a rollback, which a broken
		// connection does by itself.
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}
