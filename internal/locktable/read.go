package locktable

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/bounded"
)

// Read reads the row of a key, whichever holder it has, or that of a joint claim that keeps it from
// being acquired longest. It writes nothing and locks nothing, so
// waiters poll with it. ok is false if there is no row.
//
// A connection that has died silently must not keep its place in the pool for the whole
// time-to-live, nor end a wait: an answer that is late is asked for on another connection.
func (t *Table) Read(ctx context.Context, c Claim) (row Row, ok bool, err error) {
	began, limit := time.Now(), reading.limit(c.TTL)
	for {
		p := reading
		p.answer = min(batchTimeout, limit-time.Since(began))
		row, err = callAlone(ctx, t.errors, p, 0, func(ctx context.Context) (Row, error) {
			if c.IsJoint() {
				row, _, err := t.peekJoint(ctx, c)
				return row, err
			}
			row, _, err := t.peekOn(ctx, c)
			return row, err
		}, nil)
		if !Is(err, NoAnswer) || bounded.Ended(ctx) != nil || time.Since(began) >= limit {
			break
		}
	}
	return row, err == nil && row != (Row{}), err
}

// ReadNow is [Table.ReadAll] for one key.
func (t *Table) ReadNow(ctx context.Context, c Claim) (row Row, ok bool, err error) {
	if !t.readsLate() {
		return t.Read(ctx, c)
	}
	rows, err := t.ReadAll(ctx, []string{c.LockKey}, c.TTL)
	row, ok = rows[c.LockKey]
	return row, ok, err
}

// ReadAll reads the rows of many keys, whichever holders they have, and returns those that there
// are, by LOCK_KEY. In the four-column layout ttl decides how long they last.
// It misses nothing that was committed before, on whichever server of a cluster.
func (t *Table) ReadAll(ctx context.Context, lockKeys []string, ttl time.Duration) (map[string]Row, error) {
	return callAlone(ctx, t.errors, reading, 0, func(ctx context.Context) (map[string]Row, error) {
		return t.peekCurrent(ctx, values{Claim: Claim{TTL: ttl}, keys: lockKeys})
	}, nil)
}

// ReadFirst is Read before an attempt to acquire, for a few callers at a time: many that try
// at once must not use up the pool.
func (t *Table) ReadFirst(ctx context.Context, c Claim) (Row, error) {
	if t.reads == nil {
		row, _, err := t.Read(ctx, c)
		return row, err
	}
	return t.readInTurn(ctx, c, t.reads)
}

// readInTurn is Read when it has its turn.
func (t *Table) readInTurn(ctx context.Context, c Claim, turns *turns) (Row, error) {
	if err := turns.take(ctx); err != nil {
		return Row{}, t.errors.explain(ctx, reading.op, err)
	}
	row, _, err := t.Read(ctx, c)
	turns.pass(err)
	return row, err
}

// IsHeld reports whether the row carries the claim's holder and has not expired. In the
// four-column layout TTL decides the latter.
func (t *Table) IsHeld(ctx context.Context, c Claim) (bool, error) {
	return callAlone(ctx, t.errors, reading, c.TTL, func(ctx context.Context) (bool, error) {
		if c.IsJoint() {
			return t.isJointHeld(ctx, c)
		}
		return t.isHeld(ctx, c)
	}, nil)
}

// List reads all rows of the table, of every region, in order of region and LOCK_KEY. In the
// four-column layout ttl decides how long they last.
func (t *Table) List(ctx context.Context, ttl time.Duration) ([]Row, error) {
	return callAlone(ctx, t.errors, listing, ttl, func(ctx context.Context) ([]Row, error) {
		return t.selectRows(ctx, t.statements.list, values{Claim: Claim{TTL: ttl}})
	}, nil)
}

// ListFirst reads limit rows of the table, of every region: those that are held before those
// that have expired, the oldest first. In the four-column layout ttl decides how long they last.
func (t *Table) ListFirst(ctx context.Context, limit int, ttl time.Duration) ([]Row, error) {
	return callAlone(ctx, t.errors, listing, ttl, func(ctx context.Context) ([]Row, error) {
		return t.selectRows(ctx, t.statements.listFirst, values{Claim: Claim{TTL: ttl}, limit: limit})
	}, nil)
}

// Counts are numbers of rows.
type Counts struct{ Held, Expired int64 }

// Count counts the rows of the region. In the four-column layout ttl decides which have expired.
func (t *Table) Count(ctx context.Context, ttl time.Duration) (Counts, error) {
	return callAlone(ctx, t.errors, counting, ttl, func(ctx context.Context) (n Counts, err error) {
		s := t.statements.count
		err = queryFirst(ctx, t.pool.db, s, values{Claim: Claim{TTL: ttl}}, func(rows *sqlx.Rows) error {
			return rows.Scan(&n.Held, &n.Expired)
		})
		return n, err
	}, nil)
}

func (t *Table) peek(ctx context.Context, db sqlx.QueryerContext, c Claim) (Row, bool, error) {
	var age, left int64
	row := Row{Region: t.region, LockKey: c.LockKey}
	s := t.statements.peek
	err := db.QueryRowxContext(ctx, s.text, s.args(values{Claim: c})...).Scan(&row.Holder, &age, &left)
	if errors.Is(err, sql.ErrNoRows) {
		return Row{}, false, nil
	}
	row.Holder = unpadded(row.Holder)
	row.Age, row.Left = micros(age), micros(left)
	return row, err == nil, err
}

// peekOn is peek on a connection of the pool.
func (t *Table) peekOn(ctx context.Context, c Claim) (row Row, ok bool, err error) {
	_, err = t.pool.send(ctx, func(db executor) (err error) {
		row, ok, err = t.peek(ctx, db, c)
		return err
	})
	return row, ok, err
}

// count returns the number that s answers.
func (t *Table) count(ctx context.Context, s statement, v values) (int, error) {
	return ask(ctx, t.pool, func(db executor) (n int, err error) {
		err = db.QueryRowxContext(ctx, s.text, s.args(v)...).Scan(&n)
		return n, err
	})
}

func (t *Table) isHeld(ctx context.Context, c Claim) (bool, error) {
	if t.readsLate() {
		held, err := t.heldCurrent(ctx, together([]Claim{c}))
		return held[c.id()], err
	}
	n, err := t.count(ctx, t.statements.held, values{Claim: c})
	return n > 0, err
}

// peekJoint returns the row that keeps c from being acquired: of those that others hold the one
// that lasts longest. It is zero if there is none. expired are the LOCK_KEYs of the rows to be taken over.
func (t *Table) peekJoint(ctx context.Context, c Claim) (longest Row, expired []string, err error) {
	lockKeys := c.lockKeys()
	rows, err := t.peekMany(ctx, values{Claim: c, keys: lockKeys})
	for _, lockKey := range lockKeys {
		switch row, there := rows[lockKey]; {
		case !there:
		case row.Holder == c.Holder || row.Expired():
			expired = append(expired, lockKey)
		case longest == (Row{}) || row.Left > longest.Left:
			longest = row
		}
	}
	return longest, expired, err
}

// isJointHeld reports whether all rows of c carry its holder and have not expired.
func (t *Table) isJointHeld(ctx context.Context, c Claim) (bool, error) {
	claims := c.each()
	held, err := t.heldCurrent(ctx, together(claims))
	return len(held) == len(claims), err
}
