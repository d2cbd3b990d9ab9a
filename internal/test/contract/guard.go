package contract

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
)

// guardTests are about transactions that can commit only while the lock is held. In SQLite such a transaction blocks
// all other writers, so there the tests run one after the other.
var guardTests = []test{
	inEachCell("ATakeOverWaitsForTheGuardedTransaction", func(f *fixture) {
		rival := f.lock(ttl)
		f.guarded(f.locker(), func(*sqllock.Lease) error { return check.ErrorOf(rival.Lock(f.Context())) })
	}),
	inEachCell("SpringsTakeOverWaitsForTheGuardedTransaction", func(f *fixture) {
		f.guarded(f.locker(), func(*sqllock.Lease) error { return f.springsTakeOver() })
	}),
	inEachCell("DeleteExpiredLeavesTheRowOfAGuardedTransaction", func(f *fixture) {
		r := f.process()
		f.guarded(f.locker(), func(*sqllock.Lease) error {
			for {
				if n, err := r.DeleteExpired(f.Context()); n > 0 || err != nil && !f.isPinned(err) {
					return err
				}
				f.pause(short / 10)
			}
		})
	}),
	inEachCell("AForcedUnlockWaitsForTheGuardedTransaction", func(f *fixture) {
		r := f.process()
		f.guarded(f.locker(), func(lease *sqllock.Lease) error {
			for {
				if ok, err := r.Delete(f.Context(), "k", lease.Holder()); ok || err != nil && !f.isPinned(err) {
					return err
				}
				f.pause(time.Millisecond)
			}
		})
	}),
	inEachCell("AGuardAfterATakeOverReturnsErrLockLost", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		f.exec(f.fill("UPDATE INT_LOCK SET CLIENT_ID = 'other' WHERE {row}"))
		f.checkGuardLost(lease)
	}),
	inEachCell("AGuardAfterAForcedUnlockReturnsErrLockLost", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		f.checkDeleted(f.process(), "k", lease.Holder(), true)
		f.checkGuardLost(lease)
	}),
	inEachCell("AGuardAfterTheDeadlineReturnsErrLockLost", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		f.pass()
		f.checkGuardLost(lease)
	}),
	inEachCell("AGuardAfterUnlockIsRefused", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		f.must(lease.Unlock(f.Context()))
		tx := f.begin(nil)
		f.is(tx.guard(f.Context(), lease), sqllock.ErrNotHeld)
		f.must(tx.rollback())
	}),
	inEachCell("AGuardWaitsForATakeOverThatIsBeingCommitted", func(f *fixture) {
		if f.cell.Dialect == dialect.SQLite() {
			return // the two transactions cannot be open at once
		}
		lease := f.acquire(f.lock(ttl))
		other, tx := f.begin(nil), f.begin(nil)
		f.must(other.exec(f.Context(), f.fill("UPDATE INT_LOCK SET CLIENT_ID = 'other' WHERE {row}")))
		answer := check.Begin(func() error { return tx.guard(f.Context(), lease) })
		select {
		case err := <-answer:
			f.Fatalf("the guard did not wait: %v", err)
		// real time: for what must not happen: on a slow machine the test notices less
		case <-time.After(short):
		}
		f.must(other.commit())
		f.is(<-answer, sqllock.ErrLockLost)
		f.must(tx.rollback())
		f.is(lease.Unlock(f.Context()), sqllock.ErrLockLost)
	}),
	inEachCell("ASnapshotOlderThanATakeOverReturnsErrLockLost", func(f *fixture) {
		if f.cell.Dialect == dialect.SQLite() {
			return // it has one transaction at a time that writes
		}
		lease, tx := f.acquireBeforeSnapshot()
		f.exec(f.fill("UPDATE INT_LOCK SET CLIENT_ID = 'other' WHERE {row}"))
		f.is(tx.guard(f.Context(), lease), sqllock.ErrLockLost)
		f.must(tx.rollback())
		f.is(lease.Unlock(f.Context()), sqllock.ErrLockLost)
	}),
	inEachCell("ASnapshotOlderThanARenewalMayHaveToBeTriedAgain", func(f *fixture) {
		if f.cell.Dialect == dialect.SQLite() {
			return // it has one transaction at a time that writes
		}
		lease, tx := f.acquireBeforeSnapshot()
		f.must(lease.Renew(f.Context()))
		if err := tx.guard(f.Context(), lease); err != nil { // PostgreSQL, and MariaDB with innodb_snapshot_isolation
			f.is(err, sqllock.ErrDatabase)
			equal(f, "class", sqltext.Of(f.cell.Dialect).Classify(err), sqltext.Transient)
		}
		f.must(tx.rollback())
		again := f.begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		f.must(again.guard(f.Context(), lease))
		f.must(again.commit())
		f.must(lease.Unlock(f.Context()))
	}),
	inEachCell("SeveralTransactionsUnderOneLease", func(f *fixture) {
		if f.cell.Dialect == dialect.SQLite() || f.cell.Dialect == dialect.TiDB() {
			return // SQLite has one write transaction at a time, and TiDB no shared lock of a row
		}
		lease := f.acquire(f.lock(ttl))
		first, second := f.begin(nil), f.begin(nil)
		f.must(first.guard(f.Context(), lease))
		f.must(second.guard(f.Context(), lease))
		f.must(first.commit())
		f.must(second.commit())
		f.must(lease.Unlock(f.Context()))
	}),
	inEachCell("ASnapshotOlderThanTheLeaseIsRefused", func(f *fixture) {
		if f.cell.Dialect != dialect.Postgres() {
			return // SQLite cannot write in such a snapshot; MySQL's locking reads ignore it
		}
		tx := f.begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		f.must(tx.exec(f.Context(), "SELECT COUNT(*) FROM INT_LOCK"))
		lease := f.acquire(f.lock(ttl))
		f.is(tx.guard(f.Context(), lease), sqllock.ErrInvalid)
		f.must(tx.rollback())
		f.must(lease.Unlock(f.Context()))
	}),
	inEachCell("AGuardInEachIsolation", func(f *fixture) {
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			if level == sql.LevelSerializable && f.cell.Dialect == dialect.TiDB() {
				continue
			}
			lease := f.acquire(f.lock(ttl))
			tx := f.begin(&sql.TxOptions{Isolation: level})
			f.must(tx.guard(f.Context(), lease))
			f.must(tx.commit())
			f.must(lease.Unlock(f.Context()))
		}
	}),
	inEachCell("ASavepointUndoesOnlyTheGuardInIt", func(f *fixture) {
		if f.cell.Dialect != dialect.Postgres() {
			return // TestGuard_InASavepoint has the others
		}
		lease := f.acquire(f.lock(ttl))
		tx := f.begin(nil)
		f.must(tx.exec(f.Context(), "SAVEPOINT nested"))
		f.must(tx.guard(f.Context(), lease))
		f.must(tx.exec(f.Context(), "ROLLBACK TO SAVEPOINT nested"))
		f.must(lease.Renew(f.Context())) // as the documentation warns
		f.must(tx.guard(f.Context(), lease))
		f.must(tx.exec(f.Context(), "SAVEPOINT nested"))
		f.must(tx.exec(f.Context(), "ROLLBACK TO SAVEPOINT nested"))
		f.is(lease.Renew(f.Context()), sqllock.ErrPinned)
		f.must(tx.commit())
		f.must(lease.Unlock(f.Context()))
	}),
	inEachCell("APinnedRowDelaysNeitherTriesNorTheHeartbeat", func(f *fixture) {
		if f.cell.Dialect == dialect.SQLite() {
			return // there, a transaction that has written blocks all other writers
		}
		r := f.registry(ttl)
		pinned, free := f.acquireKey(r, "k"), f.acquireKey(r, "other")
		tx := f.begin(nil)
		f.must(tx.guard(f.Context(), pinned))
		if f.cell.Dialect == dialect.Postgres() { // on MySQL the session's time limit applies
			f.is(check.ErrorOf(f.lock(ttl).TryLock(f.Context())), sqllock.ErrNotAcquired)
		}
		outcome := check.Value(f.renewAll([]owned{{Key: "k", Holder: pinned.Holder()}, {Key: "other", Holder: free.Holder()}}, ttl))(f)
		equal(f, "outcome", fmt.Sprint(outcome), fmt.Sprint([]locktable.Outcome{locktable.Pinned, locktable.Renewed}))
		f.must(tx.commit()) // neither has waited for it
		f.must(pinned.Unlock(f.Context()))
		f.must(free.Unlock(f.Context()))
	}),
	inEachCell("UnlockBeforeTheEndOfTheTransactionReturnsErrPinned", func(f *fixture) {
		if f.cell.Dialect != dialect.Postgres() {
			return // SQLite returns an error; on MySQL the session's time limit applies
		}
		l := f.lock(ttl)
		lease := f.acquire(l)
		tx := f.begin(nil)
		f.must(tx.guard(f.Context(), lease))
		f.is(lease.Renew(f.Context()), sqllock.ErrPinned)
		inner := check.Value(l.Lock(lease.Context()))(f) // the lock is still held
		f.must(inner.Unlock(f.Context()))
		f.is(lease.Unlock(f.Context()), sqllock.ErrPinned)
		f.is(check.ErrorOf(l.TryLock(f.Context())), sqllock.ErrNotAcquired)
		f.must(tx.commit())
		f.must(f.acquire(l).Unlock(f.Context())) // it deletes the row that Unlock could not delete
	}),
	inEachCell("CloseDeletesWhatUnlockCouldNotExceptPinnedRows", func(f *fixture) {
		if f.cell.Dialect != dialect.Postgres() {
			return // see above
		}
		r := f.registry(ttl)
		first := check.Value(r.Obtain("first"))(f)
		var pinning []appTx
		for _, lock := range []*sqllock.JdbcLock{first, f.obtain(r)} {
			lease, tx := f.acquire(lock), f.begin(nil)
			f.must(tx.guard(f.Context(), lease))
			f.is(lease.Unlock(f.Context()), sqllock.ErrPinned)
			pinning = append(pinning, tx)
		}
		f.must(pinning[1].commit())
		f.is(r.Close(f.Context()), sqllock.ErrPinned)
		equal(f, "rows left", len(f.rows(f.process())), 1)
		f.must(pinning[0].commit())
	}),
	inEachCell("ReleaseAllDoesNotWaitForPinnedRows", func(f *fixture) {
		if f.cell.Dialect == dialect.SQLite() {
			return // there, a transaction that has written blocks all other writers
		}
		r := f.process()
		for _, key := range []string{"free", "k", "other"} {
			got := check.Value(r.Acquire(f.Context(), key, r.NewHolder(), ttl))(f)
			equal(f, key, got.Acquired, true)
		}
		tx := f.begin(nil)
		f.must(tx.exec(f.Context(), f.fill("UPDATE INT_LOCK SET CREATED_DATE = CREATED_DATE WHERE {row}")))
		f.is(r.ReleaseAll(f.Context()), sqllock.ErrPinned)
		left := f.rows(r)
		equal(f, "rows left", len(left), 1)
		f.must(tx.commit())
		f.must(r.ReleaseAll(f.Context()))
		equal(f, "rows", len(f.rows(r)), 0)
	}),
	inEachCell("AWaiterDeletesWhatUnlockCouldNot", func(f *fixture) {
		if f.cell.Dialect != dialect.Postgres() {
			return // see above
		}
		l := f.lock(ttl)
		lease := f.acquire(l)
		tx := f.begin(nil)
		f.must(tx.guard(f.Context(), lease))
		expiry := lease.Deadline()
		f.is(lease.Unlock(f.Context()), sqllock.ErrPinned)
		got := f.waiter(f.Context(), l.Lock)
		// real time: the first attempt times out meanwhile: if it is late, the test notices less
		f.pause(3 * short) // usually, its first attempt has timed out by then
		f.stillWaiting(got)
		f.must(tx.commit())
		f.granted(got)
		if time.Now().After(expiry) {
			f.Fatal("the waiter waited until the row expired")
		}
	}),
}

// guarded lets a lease end during an open guarded transaction while rivals try to take its rows over or to delete
// them. It checks that each succeeds only after the transaction has committed.
func (f *fixture) guarded(acquire func() *sqllock.Lease, rivals ...func(*sqllock.Lease) error) {
	f.Helper()
	table := f.counter()
	lease, tx := f.guardBeyond(acquire)
	f.must(tx.exec(f.Context(), addOne(table)))
	var committing atomic.Bool
	ended := make(chan error, len(rivals))
	for _, rival := range rivals {
		go func() {
			err := rival(lease)
			if n := f.readCounter(table); err == nil && (n != 1 || !committing.Load()) {
				err = errors.New("a rival did not wait for the commit")
			}
			ended <- err
		}()
	}
	select {
	case err := <-ended:
		f.Fatalf("before the commit: %v", err)
	// real time: for what must not happen: on a slow machine the test notices less
	case <-time.After(3 * short):
	}
	committing.Store(true)
	f.must(tx.commit())
	for range rivals {
		f.must(<-ended)
	}
}

// locker returns what acquires the lock of "k" in another process.
func (f *fixture) locker() func() *sqllock.Lease {
	f.Helper()
	l := f.lock(ttl)
	return func() *sqllock.Lease { return f.acquire(l) }
}

// springsTakeOver runs the UPDATE of Spring's DefaultLockRepository until it succeeds.
func (f *fixture) springsTakeOver() error {
	text := "UPDATE INT_LOCK SET CLIENT_ID = 'spring' WHERE {row} AND (CLIENT_ID = 'spring' OR EXPIRED_AFTER < {now})"
	if f.cell.Layout == dialect.Spring6 {
		text = "UPDATE INT_LOCK SET CLIENT_ID = 'spring' WHERE {row} AND (CLIENT_ID = 'spring' OR CREATED_DATE < {now})"
	}
	now := map[string]string{
		"postgres": "(clock_timestamp() AT TIME ZONE 'UTC')", "mysql": "UTC_TIMESTAMP(6)", "sqlite": "datetime('now', 'subsec')",
	}[sqltext.Of(f.cell.Dialect).Name]
	text = strings.ReplaceAll(f.fill(text), "{now}", now)
	for ; ; f.pause(time.Millisecond) {
		result, err := f.cell.DB.ExecContext(f.Context(), text)
		if err != nil {
			if class := sqltext.Of(f.cell.Dialect).Classify(err); class == sqltext.Transient || class == sqltext.Blocked {
				continue
			}
			return err
		}
		if n, err := result.RowsAffected(); n == 1 || err != nil {
			return err
		}
	}
}

// acquireBeforeSnapshot acquires a lease, and begins a transaction whose snapshot has its row as it is now.
func (f *fixture) acquireBeforeSnapshot() (*sqllock.Lease, appTx) {
	f.Helper()
	lease := f.acquire(f.lock(ttl))
	tx := f.begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	f.must(tx.exec(f.Context(), "SELECT COUNT(*) FROM INT_LOCK"))
	return lease, tx
}

// checkGuardLost checks that a guard fails because the lock is lost.
func (f *fixture) checkGuardLost(lease *sqllock.Lease) {
	f.Helper()
	tx := f.begin(nil)
	f.is(tx.guard(f.Context(), lease), sqllock.ErrLockLost)
	f.must(tx.rollback())
	f.is(context.Cause(lease.Context()), sqllock.ErrLockLost)
	f.is(lease.Unlock(f.Context()), sqllock.ErrLockLost)
}

// isPinned reports whether err is due to a pinned row.
func (f *fixture) isPinned(err error) bool {
	return errors.Is(err, sqllock.ErrPinned)
}

// fill replaces {row} in a statement by a condition for the row of "k".
func (f *fixture) fill(text string) string {
	f.Helper()
	key := check.Value(f.process().LockKey("k"))(f)
	return strings.ReplaceAll(text, "{row}", "REGION = '"+f.region+"' AND LOCK_KEY = '"+key+"'")
}

// counter creates a table with a single number, 0, and returns its name.
func (f *fixture) counter() string {
	f.Helper()
	table := strings.ReplaceAll(f.region, "region ", "COUNTER_")
	if columns := " (N INTEGER NOT NULL)"; f.cell.NewTable == nil {
		f.exec("CREATE TABLE " + table + columns)
	} else {
		f.cell.NewTable(f, table, columns)
	}
	f.exec("INSERT INTO " + table + " VALUES (0)")
	return table
}

func addOne(table string) string { return "UPDATE " + table + " SET N = N + 1" }

func (f *fixture) readCounter(table string) int {
	f.Helper()
	var n int
	check.Is(f, f.cell.DB.GetContext(f.Context(), &n, "SELECT N FROM "+table), nil)
	return n
}
