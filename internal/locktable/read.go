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
			row, _, err := t.peek(ctx, t.pool.on(nil), c)
			return row, err
		}, nil)
		if !Is(err, NoAnswer) || bounded.Ended(ctx) != nil || time.Since(began) >= limit {
			break
		}
	}
	return row, err == nil && row != (Row{}), err
}

// ReadAll reads the rows of many keys, whichever holders they have, and returns those that there
// are, by LOCK_KEY. In the four-column layout ttl decides how long they last.
func (t *Table) ReadAll(ctx context.Context, lockKeys []string, ttl time.Duration) (map[string]Row, error) {
	return callAlone(ctx, t.errors, reading, 0, func(ctx context.Context) (map[string]Row, error) {
		return t.peekMany(ctx, values{Claim: Claim{TTL: ttl}, keys: lockKeys})
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
		return selectRows(ctx, t.pool.db, t.statements.list, values{Claim: Claim{TTL: ttl}})
	}, nil)
}

// ListFirst reads limit rows of the table, of every region: those that are held before those
// that have expired, the oldest first. In the four-column layout ttl decides how long they last.
func (t *Table) ListFirst(ctx context.Context, limit int, ttl time.Duration) ([]Row, error) {
	return callAlone(ctx, t.errors, listing, ttl, func(ctx context.Context) ([]Row, error) {
		return selectRows(ctx, t.pool.db, t.statements.listFirst, values{Claim: Claim{TTL: ttl}, limit: limit})
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

func (t *Table) isHeld(ctx context.Context, c Claim) (bool, error) {
	var n int
	s := t.statements.held
	err := t.pool.on(nil).QueryRowxContext(ctx, s.text, s.args(values{Claim: c})...).Scan(&n)
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
	held, err := selectRowIDs(ctx, t.pool.on(nil), t.statements.heldAll, together(claims))
	return len(held) == len(claims), err
}

// manyKeys is from how many keys on they are looked up in a hash table: for fewer a look at the
// whole table would cost more, if it is large.
const manyKeys = 128

// If the statement with the hash table takes longer than the limits, the table is large, or has many
// dead rows: then each key is looked up in the index, for a while.
const (
	hashedLimit     = 5 * time.Millisecond
	hashedLimitEach = 5 * time.Microsecond // for each key
	hashedPause     = time.Minute
)

// peekMany returns the rows of many keys, by LOCK_KEY.
func (t *Table) peekMany(ctx context.Context, v values) (map[string]Row, error) {
	s, n := &t.statements.peekAll, max(len(v.rows), len(v.keys))
	again := t.hashedAgain.Load()
	if t.statements.peekMany.text != "" && n >= manyKeys && (again == nil || time.Now().After(*again)) {
		s = &t.statements.peekMany
	}
	began := time.Now()
	rows, err := selectRows(ctx, t.pool.on(nil), *s, v)
	if s == &t.statements.peekMany && time.Since(began) > hashedLimit+time.Duration(n)*hashedLimitEach {
		until := began.Add(hashedPause)
		t.hashedAgain.Store(&until)
	}
	found := make(map[string]Row, len(rows))
	for _, row := range rows {
		found[row.LockKey] = row
	}
	return found, err
}
