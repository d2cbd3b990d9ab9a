package contract

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// guardTests are about transactions that commit only under a lock that is held. In
// SQLite such a transaction keeps every other writer out, so there the tests run one
// after the other.
var guardTests = []test{
	{"ATakeOverWaitsForTheGuardedTransaction", func(w *world) {
		w.guarded(func(*sqllock.Lease) error {
			_, err := w.lock(brief).Lock(w.Context())
			return err
		})
	}},
	{"SpringsTakeOverWaitsForTheGuardedTransaction", func(w *world) {
		w.guarded(func(*sqllock.Lease) error { return w.springsTakeOver() })
	}},
	{"DeleteExpiredLeavesTheRowOfAGuardedTransaction", func(w *world) {
		r := w.process()
		w.guarded(func(*sqllock.Lease) error {
			for {
				if n, err := r.DeleteExpired(w.Context(), short); n > 0 || err != nil && !w.busy(err) {
					return err
				}
				w.pause(short / 10)
			}
		})
	}},
	{"AForcedUnlockWaitsForTheGuardedTransaction", func(w *world) {
		r := w.process()
		w.guarded(func(lease *sqllock.Lease) error {
			for {
				if ok, err := r.Delete(w.Context(), "k", lease.Holder()); ok || err != nil && !w.busy(err) {
					return err
				}
			}
		})
	}},
	{"AGuardAfterATakeOverTellsTheLoss", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		w.exec(w.fill("UPDATE INT_LOCK SET CLIENT_ID = 'thief' WHERE {row}"))
		w.lostTo(lease, func(tx *sqlx.Tx) error { return lease.Guard(w.Context(), tx) })
	}},
	{"AGuardAfterAForcedUnlockTellsTheLoss", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		w.deleted(w.process(), "k", lease.Holder(), true)
		w.lostTo(lease, func(tx *sqlx.Tx) error { return lease.Guard(w.Context(), tx.Tx) })
	}},
	{"AGuardAfterTheDeadlineTellsTheLoss", func(w *world) {
		lease := w.acquire(w.lock(brief))
		<-lease.Context().Done()
		w.lostTo(lease, func(tx *sqlx.Tx) error { return lease.Guard(w.Context(), tx) })
	}},
	{"AGuardAfterUnlockIsRefused", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		w.must(lease.Unlock(w.Context()))
		tx := w.begin(nil)
		w.is(lease.Guard(w.Context(), tx), sqllock.ErrNotHeld)
		w.must(tx.Rollback())
	}},
	{"AGuardWaitsForATakeOverThatIsBeingCommitted", func(w *world) {
		if w.cell.Dialect.Embedded {
			return // the two transactions cannot be open at once
		}
		lease := w.acquire(w.lock(ttl))
		thief, tx := w.begin(nil), w.begin(nil)
		w.execTx(thief, w.fill("UPDATE INT_LOCK SET CLIENT_ID = 'thief' WHERE {row}"))
		answer := make(chan error, 1)
		go func() { answer <- lease.Guard(w.Context(), tx) }()
		select {
		case err := <-answer:
			w.Fatalf("the guard did not wait: %v", err)
		case <-time.After(short):
		}
		w.must(thief.Commit())
		w.is(<-answer, sqllock.ErrLockLost)
		w.must(tx.Rollback())
		w.is(lease.Unlock(w.Context()), sqllock.ErrLockLost)
	}},
	{"SeveralTransactionsUnderOneLease", func(w *world) {
		if w.cell.Dialect.Embedded {
			return // it has but one at a time
		}
		lease := w.acquire(w.lock(ttl))
		first, second := w.begin(nil), w.begin(nil)
		w.must(lease.Guard(w.Context(), first))
		w.must(lease.Guard(w.Context(), second))
		w.must(first.Commit())
		w.must(second.Commit())
		w.must(lease.Unlock(w.Context()))
	}},
	{"ASnapshotOlderThanTheLeaseIsRefused", func(w *world) {
		if w.cell.Dialect.Name != "postgres" {
			return // SQLite cannot write in it, and MySQL's locking reads see past it
		}
		tx := w.begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		var n int
		w.must(tx.GetContext(w.Context(), &n, "SELECT COUNT(*) FROM INT_LOCK"))
		lease := w.acquire(w.lock(ttl))
		w.is(lease.Guard(w.Context(), tx), sqllock.ErrInvalid)
		w.must(tx.Rollback())
		w.must(lease.Unlock(w.Context()))
	}},
	{"AGuardInEachIsolation", func(w *world) {
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			lease := w.acquire(w.lock(ttl))
			tx := w.begin(&sql.TxOptions{Isolation: level})
			w.must(lease.Guard(w.Context(), tx))
			w.must(tx.Commit())
			w.must(lease.Unlock(w.Context()))
		}
	}},
	{"APinnedRowHoldsUpNeitherTriesNorTheHeartbeat", func(w *world) {
		if w.cell.Dialect.Embedded {
			return // there a transaction that has written holds up everything
		}
		r := w.autoRenewed(moderate)
		pinned := w.acquire(w.obtain(r))
		free, err := r.Obtain("other")
		w.must(err)
		other := w.acquire(free)
		tx := w.begin(nil)
		w.must(pinned.Guard(w.Context(), tx))
		began := time.Now()
		if w.cell.Dialect.Name == "postgres" { // on MySQL the session's time limit counts
			_, err = w.lock(moderate).TryLock(w.Context())
			w.is(err, sqllock.ErrNotAcquired)
			if took := time.Since(began); took > moderate {
				w.Fatalf("a try took %v", took)
			}
		}
		<-pinned.Context().Done() // a pinned row cannot be renewed
		w.is(context.Cause(pinned.Context()), sqllock.ErrLockLost)
		w.pause(short)
		w.must(other.Context().Err()) // acquired at the same time
		w.must(tx.Commit())
		w.must(other.Unlock(w.Context()))
	}},
	{"UnlockBeforeTheEndOfTheTransactionSaysSo", func(w *world) {
		if w.cell.Dialect.Name != "postgres" {
			return // SQLite reports trouble; on MySQL the session's time limit counts
		}
		l := w.lock(ttl)
		lease := w.acquire(l)
		tx := w.begin(nil)
		w.must(lease.Guard(w.Context(), tx))
		w.is(lease.Renew(w.Context()), sqllock.ErrPinned)
		inner, err := l.Lock(lease.Context()) // it is held all the same
		w.must(err)
		w.must(inner.Unlock(w.Context()))
		w.is(lease.Unlock(w.Context()), sqllock.ErrPinned)
		_, err = l.TryLock(w.Context())
		w.is(err, sqllock.ErrNotAcquired)
		w.must(tx.Commit())
		w.must(w.acquire(l).Unlock(w.Context())) // it clears up what Unlock could not
	}},
	{"CloseClearsUpWhatUnlockCouldNotButForPinnedRows", func(w *world) {
		if w.cell.Dialect.Name != "postgres" {
			return // see above
		}
		r := w.registry(ttl)
		first, err := r.Obtain("first")
		w.must(err)
		var pinning []*sqlx.Tx
		for _, lock := range []*sqllock.JdbcLock{first, w.obtain(r)} {
			lease, tx := w.acquire(lock), w.begin(nil)
			w.must(lease.Guard(w.Context(), tx))
			w.is(lease.Unlock(w.Context()), sqllock.ErrPinned)
			pinning = append(pinning, tx)
		}
		w.must(pinning[1].Commit())
		w.is(r.Close(w.Context()), sqllock.ErrPinned)
		same(w, "rows left", len(w.rows(w.process())), 1)
		w.must(pinning[0].Commit())
	}},
	{"CloseOfTheRepositoryDoesNotWaitForPinnedRows", func(w *world) {
		if w.cell.Dialect.Embedded {
			return // there a transaction that has written holds up everything
		}
		r := w.process()
		for _, key := range []string{"free", "k", "other"} {
			got, err := r.Acquire(w.Context(), key, r.NewHolder(), ttl)
			w.must(err)
			same(w, key, got.Acquired, true)
		}
		tx := w.begin(nil)
		w.execTx(tx, w.fill("UPDATE INT_LOCK SET CREATED_DATE = CREATED_DATE WHERE {row}"))
		ctx, cancel := context.WithTimeout(w.Context(), moderate)
		defer cancel()
		w.is(r.Close(ctx), sqllock.ErrPinned)
		left := w.rows(r)
		same(w, "rows left", len(left), 1)
		w.must(tx.Commit())
		w.must(r.Close(w.Context()))
		same(w, "rows", len(w.rows(r)), 0)
	}},
	{"AWaiterClearsUpWhatUnlockCouldNot", func(w *world) {
		if w.cell.Dialect.Name != "postgres" {
			return // see above
		}
		l := w.lock(ttl)
		lease := w.acquire(l)
		tx := w.begin(nil)
		w.must(lease.Guard(w.Context(), tx))
		expiry := time.Now().Add(ttl)
		w.is(lease.Unlock(w.Context()), sqllock.ErrPinned)
		got := w.waiter(w.Context(), l)
		w.pause(moderate) // until its first attempt has given up the row
		w.stillWaiting(got)
		w.must(tx.Commit())
		w.granted(got)
		if time.Until(expiry) < ttl/4 {
			w.Fatal("it waited for the row to expire")
		}
	}},
	{"ExecuteLockedTxCommits", func(w *world) {
		r, table := w.registry(ttl), w.counter()
		w.must(r.ExecuteLockedTx(w.Context(), "k", w.cell.DB, func(ctx context.Context, tx *sqlx.Tx) error {
			if !w.cell.Dialect.Embedded {
				_, err := w.lock(ttl).TryLock(ctx)
				w.is(err, sqllock.ErrNotAcquired)
			}
			return w.count(ctx, tx, table)
		}))
		same(w, "counter", w.counted(table), 1)
		same(w, "rows", len(w.rows(w.process())), 0)
	}},
	{"ExecuteLockedTxRollsBack", func(w *world) {
		r, table := w.registry(ttl), w.counter()
		failure := errors.New("work")
		w.is(r.ExecuteLockedTx(w.Context(), "k", w.cell.DB, func(ctx context.Context, tx *sqlx.Tx) error {
			return errors.Join(w.count(ctx, tx, table), failure)
		}), failure)
		func() {
			defer func() { same(w, "panic", recover(), any("stop")) }()
			_ = r.ExecuteLockedTx(w.Context(), "k", w.cell.DB, func(ctx context.Context, tx *sqlx.Tx) error {
				w.must(w.count(ctx, tx, table))
				panic("stop")
			})
		}()
		same(w, "counter", w.counted(table), 0)
		same(w, "rows", len(w.rows(w.process())), 0)
		w.is(r.ExecuteLockedTx(w.Context(), "k", nil, nil), sqllock.ErrInvalid)
	}},
	{"ExecuteLockedTxOfALostLeaseRollsBack", func(w *world) {
		r, table := w.registry(brief), w.counter()
		err := r.ExecuteLockedTx(w.Context(), "k", w.cell.DB, func(ctx context.Context, tx *sqlx.Tx) error {
			if err := w.count(ctx, tx, table); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		})
		w.is(err, sqllock.ErrLockLost)
		same(w, "counter", w.counted(table), 0)
	}},
}

// guarded lets a lease end under an open guarded transaction while a rival goes for
// its row, and checks that what the transaction wrote was committed before the
// rival succeeded.
func (w *world) guarded(rival func(*sqllock.Lease) error) {
	w.Helper()
	table := w.counter()
	lease := w.acquire(w.lock(brief))
	tx := w.begin(nil)
	w.must(lease.Guard(w.Context(), tx))
	<-lease.Context().Done()
	w.must(w.count(w.Context(), tx, table))
	var committing atomic.Bool
	ended := make(chan error, 1)
	go func() {
		err := rival(lease)
		if err == nil && !committing.Load() {
			err = errors.New("the rival did not wait")
		}
		if n := w.counted(table); err == nil && n != 1 {
			err = errors.New("the rival does not see what was written")
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		w.Fatalf("before the commit: %v", err)
	case <-time.After(3 * short):
	}
	committing.Store(true)
	w.must(tx.Commit())
	w.must(<-ended)
}

// springsTakeOver is the UPDATE of Spring's DefaultLockRepository, tried until it
// succeeds.
func (w *world) springsTakeOver() error {
	text := "UPDATE INT_LOCK SET CLIENT_ID = 'spring' WHERE {row} AND (CLIENT_ID = 'spring' OR EXPIRED_AFTER < {now})"
	if w.cell.Layout == dialect.Spring6 {
		text = "UPDATE INT_LOCK SET CLIENT_ID = 'spring' WHERE {row} AND (CLIENT_ID = 'spring' OR CREATED_DATE < {now})"
	}
	now := map[string]string{
		"postgres": "(clock_timestamp() AT TIME ZONE 'UTC')", "mysql": "UTC_TIMESTAMP(6)", "sqlite": "datetime('now', 'subsec')",
	}[w.cell.Dialect.Name]
	text = strings.ReplaceAll(w.fill(text), "{now}", now)
	for {
		result, err := w.cell.DB.ExecContext(w.Context(), text)
		if err != nil {
			if class := w.cell.Dialect.Classify(err); class == dialect.Transient || class == dialect.Blocked {
				continue
			}
			return err
		}
		if n, err := result.RowsAffected(); n == 1 || err != nil {
			return err
		}
	}
}

// lostTo checks a guard that comes too late.
func (w *world) lostTo(lease *sqllock.Lease, guard func(*sqlx.Tx) error) {
	w.Helper()
	tx := w.begin(nil)
	w.is(guard(tx), sqllock.ErrLockLost)
	w.must(tx.Rollback())
	w.is(context.Cause(lease.Context()), sqllock.ErrLockLost)
	w.is(lease.Unlock(w.Context()), sqllock.ErrLockLost)
}

// busy tells whether a pinned row was what stood in the way.
func (w *world) busy(err error) bool {
	return errors.Is(err, sqllock.ErrPinned)
}

func (w *world) begin(opts *sql.TxOptions) *sqlx.Tx {
	w.Helper()
	tx, err := w.cell.DB.BeginTxx(context.WithoutCancel(w.Context()), opts)
	w.must(err)
	w.Cleanup(func() { _ = tx.Rollback() }) // a test that has failed must not leave it open
	return tx
}

// fill names the row of "k" in a statement.
func (w *world) fill(text string) string {
	w.Helper()
	key, err := w.process().LockKey("k")
	w.must(err)
	return strings.ReplaceAll(text, "{row}", "REGION = '"+w.region+"' AND LOCK_KEY = '"+key+"'")
}

// counter creates a table of one number, 0.
func (w *world) counter() string {
	w.Helper()
	table := strings.ReplaceAll(w.region, "region ", "COUNTER_")
	w.exec("CREATE TABLE " + table + " (N INTEGER NOT NULL)")
	w.exec("INSERT INTO " + table + " VALUES (0)")
	return table
}

func (w *world) count(ctx context.Context, tx *sqlx.Tx, table string) error {
	_, err := tx.ExecContext(ctx, "UPDATE "+table+" SET N = N + 1")
	return err
}

func (w *world) counted(table string) int {
	w.Helper()
	var n int
	if err := w.cell.DB.GetContext(w.Context(), &n, "SELECT N FROM "+table); err != nil {
		w.Error(err)
	}
	return n
}

func (w *world) execTx(tx *sqlx.Tx, text string) {
	w.Helper()
	_, err := tx.ExecContext(w.Context(), text)
	w.must(err)
}
