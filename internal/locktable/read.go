package locktable

import (
	"context"
	"database/sql"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/transaction"
)

// reads are what is asked of the table.
type reads struct {
	*database

	first  *dbcall.Limiter // for reads before an attempt; nil if batching is disabled
	polled *dbcall.Limiter // for waiters whose poll has failed
}

// Read reads the row of a key, whichever holder it has, or that of a joint claim that keeps it from being acquired
// longest. It writes nothing and locks nothing, so waiters poll with it. ok is false if there is no row.
//
// A connection that has died silently must not keep its place in the pool for the whole time-to-live, nor end a wait:
// an answer that is late is asked for on another connection.
func (r *reads) Read(ctx context.Context, c Claim) (row Row, ok bool, err error) {
	timeout := max(batchTimeout, r.server.TestPatience)
	p, began, limit := reading, time.Now(), reading.Limit(c.TTL, 2*timeout)
	p.Exact = true
	for left := limit; left > 0; left = limit - time.Since(began) { // an answer of 0 has no limit
		p.Answer = min(timeout, left)
		row, err = dbcall.CallInTime(ctx, r.server, p, 0, func(ctx context.Context) (Row, error) {
			if len(c.More) > 0 {
				row, _, err := r.peekJoint(ctx, c)
				return row, err
			}
			return r.peekOne(ctx, c)
		}, nil)
		if err == nil || !dbcall.Is(err, dbcall.NoAnswer) || bounded.Ended(ctx) != nil {
			break
		}
	}
	return row, err == nil && row != (Row{}), err
}

// ReadNow is [reads.ReadAll] for one key.
func (r *reads) ReadNow(ctx context.Context, c Claim) (row Row, ok bool, err error) {
	if !r.readsLate() {
		return r.Read(ctx, c)
	}
	rows, err := r.ReadAll(ctx, []string{c.LockKey}, c.TTL)
	row, ok = rows[c.LockKey]
	return row, ok, err
}

// ReadAll reads the rows of many keys, whichever holders they have, and returns those that there are, by LOCK_KEY. In
// the four-column layout ttl decides how long they last. It misses nothing that was committed before, on whichever
// server of a cluster.
func (r *reads) ReadAll(ctx context.Context, lockKeys []string, ttl time.Duration) (map[string]Row, error) {
	return dbcall.CallInTime(ctx, r.server, reading, 0, func(ctx context.Context) (map[string]Row, error) {
		return r.peekCurrent(ctx, stmt.Values{Claim: Claim{TTL: ttl}, Keys: lockKeys})
	}, nil)
}

// Attend is called by a waiter before it polls the row of a key. Until it calls leave, writes are reported, if the table has a
// [poll.Watcher]. A release of the row wakes it, if the table has a [Bell], unless it waits regardless: see [poll.Pace].
func (t *Table) Attend(lockKey string, regardless func() bool) (leave func()) {
	if b := t.Releases.bell; b != nil && !regardless() {
		return b.Attend(b.nameOf(lockKey), lockKey)
	}
	return t.Poller.Attend()
}

// pollMany reads the rows of many keys for their waiters.
func (r *reads) pollMany(ctx context.Context, v stmt.Values) (map[string]Row, error) {
	return dbcall.CallInTime(ctx, r.server, polling, 0, func(ctx context.Context) (map[string]Row, error) {
		return r.peekMany(ctx, v)
	}, nil)
}

// readPolled is Read for waiters whose poll has failed.
func (r *reads) readPolled(ctx context.Context, c Claim) (Row, error) {
	return r.readLimited(ctx, c, r.polled)
}

// ReadFirst is Read before an attempt to acquire, for a few callers at a time: many that try at once must not use up
// the pool.
func (r *reads) ReadFirst(ctx context.Context, c Claim) (Row, error) {
	if r.first == nil {
		row, _, err := r.Read(ctx, c)
		return row, err
	}
	return r.readLimited(ctx, c, r.first)
}

// readLimited is Read when the limiter has a place.
func (r *reads) readLimited(ctx context.Context, c Claim, l *dbcall.Limiter) (Row, error) {
	if err := l.Take(ctx); err != nil {
		return Row{}, r.server.Explain(ctx, reading.Op, err)
	}
	row, _, err := r.Read(ctx, c)
	l.Done(err)
	return row, err
}

// ReadSoon is Read for a caller whose ctx has ended: it gives up after a moment.
func (r *reads) ReadSoon(ctx context.Context, c Claim) (Row, error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(bounded.Grace, r.server.TestPatience))
	defer cancel()
	return bounded.Do(limited, 0, func() (Row, error) {
		row, _, err := r.Read(limited, c)
		return row, err
	}, nil)
}

// MayBeBlocked reports whether a statement that has had no answer for so long may be waiting for a row that a transaction
// has pinned.
func (r *reads) MayBeBlocked(unanswered time.Duration) bool {
	return unanswered < max(PinnedTimeout, r.server.TestPatience)+bounded.Grace
}

// IsHeld reports whether the row carries the claim's holder and has not expired. In the four-column layout TTL
// decides the latter.
func (r *reads) IsHeld(ctx context.Context, c Claim) (bool, error) {
	return dbcall.CallInTime(ctx, r.server, reading, c.TTL, func(ctx context.Context) (bool, error) {
		return r.isHeld(ctx, c)
	}, nil)
}

// List reads all rows of the table, of every region, in order of region and LOCK_KEY. In the four-column layout ttl
// decides how long they last.
func (r *reads) List(ctx context.Context, ttl time.Duration) ([]Row, error) {
	return dbcall.CallInTime(ctx, r.server, listing, ttl, func(ctx context.Context) ([]Row, error) {
		return r.selectRows(ctx, r.statements.List, stmt.Values{Claim: Claim{TTL: ttl}})
	}, nil)
}

// ListFirst reads limit rows of the table, of every region: those that are held before those that have expired, the
// oldest first. In the four-column layout ttl decides how long they last.
func (r *reads) ListFirst(ctx context.Context, limit int, ttl time.Duration) ([]Row, error) {
	return dbcall.CallInTime(ctx, r.server, listing, ttl, func(ctx context.Context) ([]Row, error) {
		return r.selectRows(ctx, r.statements.ListFirst, stmt.Values{Claim: Claim{TTL: ttl}, Limit: limit})
	}, nil)
}

// Counts are numbers of rows. The root package documents the states.
type Counts struct{ Held, Kept, Finished, Expired int64 }

// Count counts the rows of the region. In the four-column layout ttl decides which have expired.
func (r *reads) Count(ctx context.Context, ttl time.Duration) (Counts, error) {
	return dbcall.CallInTime(ctx, r.server, counting, ttl, func(ctx context.Context) (Counts, error) {
		return transaction.On(ctx, r.pool, func(conn *sql.Conn) (n Counts, err error) {
			err = stmt.QueryFirst(ctx, conn, r.statements.Count, stmt.Values{Claim: Claim{TTL: ttl}}, func(rows *sql.Rows) error {
				return rows.Scan(&n.Held, &n.Kept, &n.Finished, &n.Expired)
			})
			return n, err
		})
	}, nil)
}

// peek returns the row of one key, or none.
func (d *database) peek(ctx context.Context, db stmt.Executor, c Claim) (row Row, err error) {
	err = stmt.QueryFirst(ctx, db, d.statements.Peek, stmt.Values{Claim: c}, func(rows *sql.Rows) error {
		var age, left sql.NullInt64
		row = Row{Region: d.region, LockKey: c.LockKey}
		err := rows.Scan(&row.Holder, &age, &left)
		row.Holder = stmt.Unpadded(row.Holder)
		row.Age, row.Left = stmt.Micros(age), stmt.Micros(left)
		return err
	})
	return row, err
}

// peekOne is peek on a connection of the pool.
func (d *database) peekOne(ctx context.Context, c Claim) (Row, error) {
	return transaction.On(ctx, d.pool, func(conn *sql.Conn) (Row, error) { return d.peek(ctx, conn, c) })
}

// isHeld reports whether all rows of c carry its holder and have not expired.
func (d *database) isHeld(ctx context.Context, c Claim) (bool, error) {
	if c.IsJoint() || d.readsLate() {
		held, err := d.heldCurrent(ctx, stmt.Together(c.Each()))
		return err == nil && len(held) == c.Count(), err
	}
	n, err := d.count(ctx, d.statements.Held, stmt.Values{Claim: c})
	return n > 0, err
}

// peekJoint returns the row that keeps c from being acquired: of those that others hold the one that lasts longest.
// It is zero if there is none. expired are the LOCK_KEYs of the rows to be taken over.
func (d *database) peekJoint(ctx context.Context, c Claim) (longest Row, expired []string, err error) {
	lockKeys := c.LockKeys()
	rows, err := d.peekMany(ctx, stmt.Values{Claim: c, Keys: lockKeys})
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
func (d *database) peekMany(ctx context.Context, v stmt.Values) (rows map[string]Row, err error) {
	err = d.inParts(v.Len(), func(from, to int) error {
		some, err := d.selectRows(ctx, d.statements.PeekAll, v.Part(from, to))
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
