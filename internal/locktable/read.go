package locktable

import (
	"context"
	"database/sql"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/transaction"
)

// Read reads the row of a key, whichever holder it has, or that of a joint claim that keeps it from being acquired
// longest. It writes nothing and locks nothing, so waiters poll with it. ok is false if there is no row.
//
// A connection that has died silently must not keep its place in the pool for the whole time-to-live, nor end a wait:
// an answer that is late is asked for on another connection.
func (t *Table) Read(ctx context.Context, c Claim) (row Row, ok bool, err error) {
	patience := t.Patience()
	p, began, limit := reading, time.Now(), reading.limit(c.TTL, 2*patience)
	p.exact = true
	for left := limit; left > 0; left = limit - time.Since(began) { // an answer of 0 has no limit
		p.answer = min(patience, left)
		row, err = callAlone(ctx, t, p, 0, func(ctx context.Context) (Row, error) {
			if len(c.More) > 0 {
				row, _, err := t.peekJoint(ctx, c)
				return row, err
			}
			return t.peekOne(ctx, c)
		}, nil)
		if err == nil || !Is(err, NoAnswer) || bounded.Ended(ctx) != nil {
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

// ReadAll reads the rows of many keys, whichever holders they have, and returns those that there are, by LOCK_KEY. In
// the four-column layout ttl decides how long they last. It misses nothing that was committed before, on whichever
// server of a cluster.
func (t *Table) ReadAll(ctx context.Context, lockKeys []string, ttl time.Duration) (map[string]Row, error) {
	return callAlone(ctx, t, reading, 0, func(ctx context.Context) (map[string]Row, error) {
		return t.peekCurrent(ctx, values{Claim: Claim{TTL: ttl}, keys: lockKeys})
	}, nil)
}

// ReadFirst is Read before an attempt to acquire, for a few callers at a time: many that try at once must not use up
// the pool.
func (t *Table) ReadFirst(ctx context.Context, c Claim) (Row, error) {
	if t.reads == nil {
		row, _, err := t.Read(ctx, c)
		return row, err
	}
	return t.readLimited(ctx, c, t.reads)
}

// readLimited is Read when the limiter has a place.
func (t *Table) readLimited(ctx context.Context, c Claim, l *limiter) (Row, error) {
	if err := l.take(ctx); err != nil {
		return Row{}, t.errors.explain(ctx, reading.op, err)
	}
	row, _, err := t.Read(ctx, c)
	l.cancel(err)
	return row, err
}

// ReadSoon is Read for a caller whose ctx has ended: it gives up after a moment.
func (t *Table) ReadSoon(ctx context.Context, c Claim) (Row, error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(bounded.Grace, t.patience))
	defer cancel()
	return bounded.Do(limited, 0, func() (Row, error) {
		row, _, err := t.Read(limited, c)
		return row, err
	}, nil)
}

// MayBeBlocked reports whether a statement that has had no answer for so long may be waiting for a row that a transaction
// has pinned.
func (t *Table) MayBeBlocked(unanswered time.Duration) bool {
	return unanswered < max(PinnedTimeout, t.patience)+bounded.Grace
}

// IsHeld reports whether the row carries the claim's holder and has not expired. In the four-column layout TTL
// decides the latter.
func (t *Table) IsHeld(ctx context.Context, c Claim) (bool, error) {
	return callAlone(ctx, t, reading, c.TTL, func(ctx context.Context) (bool, error) {
		return t.isHeld(ctx, c)
	}, nil)
}

// List reads all rows of the table, of every region, in order of region and LOCK_KEY. In the four-column layout ttl
// decides how long they last.
func (t *Table) List(ctx context.Context, ttl time.Duration) ([]Row, error) {
	return callAlone(ctx, t, listing, ttl, func(ctx context.Context) ([]Row, error) {
		return t.selectRows(ctx, t.statements.list, values{Claim: Claim{TTL: ttl}})
	}, nil)
}

// ListFirst reads limit rows of the table, of every region: those that are held before those that have expired, the
// oldest first. In the four-column layout ttl decides how long they last.
func (t *Table) ListFirst(ctx context.Context, limit int, ttl time.Duration) ([]Row, error) {
	return callAlone(ctx, t, listing, ttl, func(ctx context.Context) ([]Row, error) {
		return t.selectRows(ctx, t.statements.listFirst, values{Claim: Claim{TTL: ttl}, limit: limit})
	}, nil)
}

// Counts are numbers of rows. The root package documents the states.
type Counts struct{ Held, Kept, Finished, Expired int64 }

// Count counts the rows of the region. In the four-column layout ttl decides which have expired.
func (t *Table) Count(ctx context.Context, ttl time.Duration) (Counts, error) {
	return callAlone(ctx, t, counting, ttl, func(ctx context.Context) (Counts, error) {
		return transaction.On(ctx, t.pool, func(conn *sql.Conn) (n Counts, err error) {
			err = queryFirst(ctx, conn, t.statements.count, values{Claim: Claim{TTL: ttl}}, func(rows *sql.Rows) error {
				return rows.Scan(&n.Held, &n.Kept, &n.Finished, &n.Expired)
			})
			return n, err
		})
	}, nil)
}

// peek returns the row of one key, or none.
func (t *Table) peek(ctx context.Context, db executor, c Claim) (row Row, err error) {
	err = queryFirst(ctx, db, t.statements.peek, values{Claim: c}, func(rows *sql.Rows) error {
		var age, left sql.NullInt64
		row = Row{Region: t.region, LockKey: c.LockKey}
		err := rows.Scan(&row.Holder, &age, &left)
		row.Holder = unpadded(row.Holder)
		row.Age, row.Left = micros(age), micros(left)
		return err
	})
	return row, err
}

// peekOne is peek on a connection of the pool.
func (t *Table) peekOne(ctx context.Context, c Claim) (Row, error) {
	return transaction.On(ctx, t.pool, func(conn *sql.Conn) (Row, error) { return t.peek(ctx, conn, c) })
}

// count returns the number that s answers.
func (t *Table) count(ctx context.Context, s statement, v values) (int, error) {
	return transaction.On(ctx, t.pool, func(conn *sql.Conn) (n int, err error) {
		err = queryFirst(ctx, conn, s, v, func(rows *sql.Rows) error { return rows.Scan(&n) })
		return n, err
	})
}

func (t *Table) selectRows(ctx context.Context, s statement, v values) ([]Row, error) {
	return transaction.On(ctx, t.pool, func(conn *sql.Conn) ([]Row, error) { return selectRows(ctx, conn, s, v) })
}

// selectRowIDs returns the rows that s answers, or those that it has changed.
func (t *Table) selectRowIDs(ctx context.Context, try transaction.Try, s statement, v values) (ids map[rowID]bool, resent bool, err error) {
	for try.Next(ctx) {
		ids, try.Err = selectRowIDs(ctx, try.Conn, s, v)
	}
	return ids, try.Resent, try.Err
}

// isHeld reports whether all rows of c carry its holder and have not expired.
func (t *Table) isHeld(ctx context.Context, c Claim) (bool, error) {
	if c.IsJoint() || t.readsLate() {
		held, err := t.heldCurrent(ctx, together(c.each()))
		return err == nil && len(held) == c.count(), err
	}
	n, err := t.count(ctx, t.statements.held, values{Claim: c})
	return n > 0, err
}

// peekJoint returns the row that keeps c from being acquired: of those that others hold the one that lasts longest.
// It is zero if there is none. expired are the LOCK_KEYs of the rows to be taken over.
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

// peekMany returns the rows of many keys, by LOCK_KEY.
func (t *Table) peekMany(ctx context.Context, v values) (rows map[string]Row, err error) {
	err = t.inParts(v.len(), func(from, to int) error {
		some, err := t.selectRows(ctx, t.statements.peekAll, v.part(from, to))
		rows = merged(rows, byKey(some))
		return err
	})
	return rows, err
}

// byKey returns rows by LOCK_KEY.
func byKey(rows []Row) map[string]Row {
	found := make(map[string]Row, len(rows))
	for _, row := range rows {
		found[row.LockKey] = row
	}
	return found
}
