package servers_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/wire"
	"github.com/sqllock/sqllock/observe"
)

// swallowCommits returns a DSN that leads through a proxy, which lets COMMIT through and its answer not, nor anything
// that follows. The channel is closed when COMMIT is sent.
func swallowCommits(t *testing.T, db *dbtest.DB) (dsn string, committing chan struct{}) {
	t.Helper()
	proxy, dsn := wire.Through(t, db.DSN)
	committing = make(chan struct{})
	var once sync.Once
	proxy.Watch(func() func([]byte) {
		return func(request []byte) {
			if bytes.Contains(bytes.ToUpper(request), []byte("COMMIT\x00")) {
				proxy.Freeze()
				once.Do(func() { close(committing) })
			}
		}
	})
	return dsn, committing
}

// A caller that gets an error that is no ErrDatabase does the work again. So there must be none after a COMMIT that
// may have been applied.
func TestGuard_LostAnswerOfACommit(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"pgx", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			db := up(t, dbtest.Postgres)
			db.DB.MustExec("CREATE TABLE WORK (N INT)")
			r := repository(t, db, nil)
			registry := newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true})
			dsn, committing := swallowCommits(t, db)
			pool := db.OpenDSN(t, driver, dsn)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			context.AfterFunc(t.Context(), cancel)
			go func() {
				<-committing
				for n := 0; n == 0 && t.Context().Err() == nil; { // until the server has committed
					_ = db.DB.Get(&n, "SELECT COUNT(*) FROM WORK")
				}
				cancel()
			}()
			err := registry.ExecuteLockedTx(ctx, "k", pool.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
				return check.ErrorOf(tx.ExecContext(ctx, "INSERT INTO WORK VALUES (1)"))
			})
			is(t, err, sqllock.ErrDatabase, context.Canceled)
			var n int
			must(t, db.DB.Get(&n, "SELECT COUNT(*) FROM WORK"))
			check.Equal(t, "rows", n, 1)
		})
	}
}

// Rows that are pinned all the time have all turns of the statement that waits for such rows. Those of another lease
// are pinned by one short transaction after the other.
func TestGuard_ShortTransactionsLoseNoLease(t *testing.T) {
	t.Parallel()
	databases{"PostgreSQL": dbtest.Postgres, "MariaDB": dbtest.MySQL}.migrated(t, func(t *testing.T, db *dbtest.DB) {
		r := repository(t, db, nil)
		renewed := make(chan observe.Renewal, 100)
		registry := newRegistry(t, r, &sqllock.RegistryOptions{
			TTL: ttl, Observers: onRenewals(func(e observe.Renewal) { renewed <- e }),
		})
		tx := check.Value(db.DB.BeginTx(t.Context(), nil))(t)
		defer func() { must(t, tx.Rollback()) }()
		for i := range 20 {
			long := check.Value(registry.TryLock(t.Context(), fmt.Sprint("long", i)))(t)
			must(t, long.RenewFor(t.Context(), 10*ttl))
			must(t, long.Guard(t.Context(), tx))
		}
		for e := <-renewed; e.Pinned == 0; {
			e = <-renewed
		}
		lock := check.Value(registry.ObtainAll("a", "b"))(t)
		short := check.Value(lock.TryLock(t.Context()))(t)
		for began := short.Deadline(); !short.Deadline().After(began); {
			tx := check.Value(db.DB.BeginTx(t.Context(), nil))(t)
			must(t, short.Guard(t.Context(), tx)) // it fails once the lease is lost
			time.Sleep(100 * time.Millisecond)
			must(t, tx.Commit())
		}
		must(t, short.Unlock(t.Context()))
	})
}

// Where several statements renew the leases of a registry, those whose rows are pinned keep none of the others from being renewed,
// although they end first.
func TestGuard_PinnedRowsDelayNoOtherPart(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.Postgres)
	r := check.Value(sqllock.NewRepository(locktable.WithMaxRenewals(unhurried(t), 1), db.DB.DB, db.Dialect, nil))(t)
	registry := newRegistry(t, r, &sqllock.RegistryOptions{TTL: ttl / 2})
	leases := make([]*sqllock.Lease, 6)
	for i := range leases {
		leases[i] = check.Value(registry.TryLock(t.Context(), fmt.Sprint(i)))(t)
	}
	tx := check.Value(db.DB.BeginTx(t.Context(), nil))(t)
	must(t, check.ErrorOf(tx.ExecContext(t.Context(), "SELECT 1 FROM INT_LOCK WHERE CLIENT_ID = $1 FOR SHARE", leases[0].Holder())))
	for i, lease := range leases[1:] {
		for first := lease.Deadline(); !lease.Deadline().After(first); {
			select {
			case <-lease.Context().Done():
				t.Fatalf("lease %d: %v", i+1, context.Cause(lease.Context()))
			case <-time.After(10 * time.Millisecond): // real time: between two polls
			}
		}
	}
	must(t, tx.Rollback())
	for _, lease := range leases {
		must(t, lease.Unlock(t.Context()))
	}
}

// The smallest step changes a row whatever its CREATED_DATE is and however many digits of a second the column keeps,
// since a cluster does not certify a row that stays as it is. Nothing else changes.
func TestGuard_WritingChangesEveryRow(t *testing.T) {
	t.Parallel()
	mysqls.each(t, func(t *testing.T, db *dbtest.DB) {
		for digits := 3; digits <= 6; digits++ {
			table := fmt.Sprintf("T%d_LOCK", digits)
			db.DB.MustExecContext(t.Context(), fmt.Sprintf(`CREATE TABLE %s (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36),
CREATED_DATE DATETIME(%d) NOT NULL, EXPIRED_AFTER DATETIME(%d) NOT NULL, PRIMARY KEY (LOCK_KEY, REGION))`, table, digits, digits))
			names := check.Value(sqltext.NamesFor(fmt.Sprintf("T%d_", digits)))(t)
			text := sqltext.Of(db.Dialect).Statements(dialect.Spring7, names).GuardByWriting
			for _, created := range []string{"2026-01-01 00:00:00", "2026-01-01 23:59:59.999", "2026-01-01 00:00:00.1234", "2026-01-01 00:00:00.12345", "2026-01-01 00:00:00.123456"} {
				db.DB.MustExecContext(t.Context(), "REPLACE INTO "+table+" VALUES ('k', 'r', 'h', ?, '2100-01-01')", created)
				for range 3 {
					changes(t, db.DB, table, text)
				}
			}
		}
	})
}

// changes runs a statement that guards by writing, and checks what it has changed.
func changes(t *testing.T, db *sqlx.DB, table, text string) {
	t.Helper()
	read := func() (row struct{ Owner, Created, Expired string }) {
		must(t, db.GetContext(t.Context(), &row, "SELECT CLIENT_ID AS owner, CAST(CREATED_DATE AS CHAR) AS created, CAST(EXPIRED_AFTER AS CHAR) AS expired FROM "+table))
		return row
	}
	before := read()
	result := check.Value(db.NamedExecContext(t.Context(), text, map[string]any{"region": "r", "key": "k", "holder": "h"}))(t)
	n := check.Value(result.RowsAffected())(t)
	after := read()
	if n != 1 || after.Created <= before.Created || after.Owner != before.Owner || after.Expired != before.Expired {
		t.Errorf("%d rows affected: %v became %v", n, before, after)
	}
}

// ROLLBACK TO a savepoint undoes a guard that came after it, as the documentation of Guard warns: on MySQL and
// MariaDB if the savepoint was the first of the transaction, as that of a nested transaction of an ORM may be.
// InnoDB learns of a savepoint only if it takes part in the transaction already. Nothing tells a guard of that.
func TestGuard_InASavepoint(t *testing.T) {
	t.Parallel()
	databases{"PostgreSQL": dbtest.Postgres, "MariaDB": dbtest.MySQL, "MariaDB's newest": dbtest.MariaDBNewest, "MySQL": dbtest.OracleMySQL}.migrated(t, func(t *testing.T, db *dbtest.DB) {
		lease := check.Value(newRegistry(t, repository(t, db, nil), nil).TryLock(t.Context(), "k"))(t)
		afterRollback := func(before ...string) (pinned bool) {
			tx := check.Value(db.DB.BeginTxx(t.Context(), nil))(t)
			for _, statement := range before {
				tx.MustExecContext(t.Context(), statement)
			}
			tx.MustExecContext(t.Context(), "SAVEPOINT nested")
			must(t, lease.Guard(t.Context(), tx))
			check.Equal(t, "pinned in the savepoint", isPinned(t, db), true)
			tx.MustExecContext(t.Context(), "ROLLBACK TO SAVEPOINT nested")
			pinned = isPinned(t, db)
			must(t, tx.Commit())
			return pinned
		}
		check.Equal(t, "pinned after ROLLBACK TO the first statement", afterRollback(), false)
		check.Equal(t, "pinned after ROLLBACK TO what follows a read", afterRollback("SELECT COUNT(*) FROM INT_LOCK"), db.Name == "mysql")
		must(t, lease.Unlock(t.Context()))
	})
}

// A guard that had to wait for a take-over, and is refused after it, leaves the next holder's row locked: PostgreSQL has
// locked the row before it looks at the condition again. The end of the transaction gives the row back, or ROLLBACK TO a
// savepoint that came before. Until then the next holder keeps its lease, and cannot renew it.
func TestGuard_RefusedAfterAWait(t *testing.T) {
	t.Parallel()
	databases{"PostgreSQL": dbtest.Postgres, "PostgreSQL's newest": dbtest.PostgresNewest}.migrated(t, func(t *testing.T, db *dbtest.DB) {
		for _, end := range []string{"ROLLBACK", "ROLLBACK TO SAVEPOINT before_guard"} {
			late, next, takeOver := takenOver(t, db)
			tx := check.Value(db.DB.BeginTxx(t.Context(), nil))(t)
			tx.MustExecContext(t.Context(), "SAVEPOINT before_guard")
			var session int
			must(t, tx.GetContext(t.Context(), &session, "SELECT pg_backend_pid()"))
			refused := make(chan error, 1)
			go func() { refused <- late.Guard(t.Context(), tx) }()
			for waits := false; !waits; {
				must(t, db.DB.GetContext(t.Context(), &waits, "SELECT cardinality(pg_blocking_pids($1)) > 0", session))
			}
			must(t, takeOver.Commit())
			is(t, <-refused, sqllock.ErrLockLost)

			check.Equal(t, "pinned by the guard that was refused", isPinned(t, db), true)
			is(t, next.Renew(t.Context()), sqllock.ErrPinned)
			tx.MustExecContext(t.Context(), end)
			check.Equal(t, "pinned after "+end, isPinned(t, db), false)
			must(t, next.Renew(t.Context()))
			must(t, next.Unlock(t.Context()))
			_ = tx.Rollback() // it may have been rolled back
		}
	})
}

// A transaction that is none of the lease's has the row pinned: a caller that enters the lock again has it, also if its limit
// ends before that of the renewal's wait. The database has answered, and no other holder can have the row.
func TestLease_EnteringAgainBesideAPinnedRow(t *testing.T) {
	t.Parallel()
	for _, o := range onServers(t) {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			db := up(t, o.database)
			registry := o.opened(t, db.DSN, openOptions{registry: sqllock.RegistryOptions{TTL: never, NoRenew: true}})
			lock, joint := obtain(t, registry, "k"), obtainAll(t, registry, "a", "b")
			lease, both := check.Value(lock.TryLock(t.Context()))(t), check.Value(joint.TryLock(t.Context()))(t)
			pin := check.Value(db.DB.BeginTxx(t.Context(), nil))(t)
			defer func() { _ = pin.Rollback() }()
			must(t, check.ErrorOf(pin.ExecContext(t.Context(), "SELECT 1 FROM INT_LOCK FOR UPDATE")))
			for _, limit := range []time.Duration{300 * time.Millisecond, 3 * time.Second} {
				must(t, check.Value(lock.TryLockFor(lease.Context(), limit))(t).Unlock(t.Context()))
				must(t, check.Value(joint.TryLockFor(both.Context(), limit))(t).Unlock(t.Context()))
			}
			// real time: the limit ends a wait, however late it is
			ended, cancel := context.WithTimeout(lease.Context(), 300*time.Millisecond)
			defer cancel()
			is(t, check.ErrorOf(lock.TryLock(ended)), context.DeadlineExceeded) // a lease would have ended with it
			must(t, pin.Rollback())
			must(t, lease.Unlock(t.Context()))
			must(t, both.Unlock(t.Context()))
		})
	}
}

// takenOver returns a lease and the next one of its row, and the transaction that gives the row to that one.
func takenOver(t *testing.T, db *dbtest.DB) (late, next *sqllock.Lease, takeOver *sqlx.Tx) {
	t.Helper()
	registry := func() *sqllock.Registry {
		return newRegistry(t, repository(t, db, nil), &sqllock.RegistryOptions{NoRenew: true})
	}
	lock := func() (lease *sqllock.Lease, owner string) {
		lease = check.Value(registry().TryLock(t.Context(), "k"))(t)
		must(t, db.DB.GetContext(t.Context(), &owner, "SELECT CLIENT_ID FROM INT_LOCK"))
		return lease, owner
	}
	const give = "UPDATE INT_LOCK SET CLIENT_ID = $1"
	late, owner := lock()
	db.DB.MustExecContext(t.Context(), "DELETE FROM INT_LOCK")
	next, nextOwner := lock()
	db.DB.MustExecContext(t.Context(), give, owner)
	takeOver = check.Value(db.DB.BeginTxx(t.Context(), nil))(t)
	takeOver.MustExecContext(t.Context(), give, nextOwner)
	return late, next, takeOver
}

// isPinned reports whether a transaction has the only row locked.
func isPinned(t *testing.T, db *dbtest.DB) bool {
	t.Helper()
	tx := check.Value(db.DB.BeginTxx(t.Context(), nil))(t)
	_, err := tx.ExecContext(t.Context(), "SELECT * FROM INT_LOCK FOR UPDATE NOWAIT")
	if err != nil {
		check.Equal(t, "class of "+err.Error(), sqltext.Of(db.Dialect).Classify(err), sqltext.Blocked)
	}
	must(t, tx.Rollback())
	return err != nil
}
