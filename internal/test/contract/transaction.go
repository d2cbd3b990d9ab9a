package contract

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
)

// transactionTests are about the application's own transactions on the same pool.
var transactionTests = []test{
	inEachCell("AnOpenTransactionOfTheCallerIsNotJoined", func(f *fixture) {
		tx := check.Value(f.cell.DB.BeginTxx(f.Context(), nil))(f)
		r := f.process()
		holder := f.acquireRow(r, "k", ttl)
		f.checkAcquired(r, "k", holder, true)
		f.checkRenewed(r, holder, ttl, true)
		f.must(tx.Rollback())
		f.checkAcquired(r, "k", holder, true) // the rollback did not undo it
		f.checkDeleted(r, "k", holder, true)
	}),
	inEachCell("ASnapshotOfTheCallerHidesNothing", func(f *fixture) {
		tx := check.Value(f.cell.DB.BeginTxx(f.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead}))(f)
		defer func() { f.must(tx.Rollback()) }()
		var n int
		f.must(tx.GetContext(f.Context(), &n, "SELECT COUNT(*) FROM INT_LOCK"))
		r := f.process()
		holder := f.acquireRow(r, "k", ttl)
		f.checkAcquired(r, "k", holder, true)
		f.checkDeleted(r, "k", holder, true)
		f.checkAcquired(r, "k", holder, false)
	}),
}

func (f *fixture) exec(text string) {
	f.Helper()
	f.must(check.ErrorOf(f.cell.DB.ExecContext(context.WithoutCancel(f.Context()), text)))
}

// lockedTxTests are about ExecuteLockedTx, which is one of database/sql in every cell.
var lockedTxTests = []test{
	inEachCell("ExecuteLockedTxCommits", func(f *fixture) {
		r, table := f.registry(ttl), f.counter()
		f.must(r.ExecuteLockedTx(f.Context(), "k", f.cell.DB.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
			if f.cell.Dialect != dialect.SQLite() {
				f.is(check.ErrorOf(f.lock(ttl).TryLock(ctx)), sqllock.ErrNotAcquired)
			}
			return f.addOne(ctx, tx, table)
		}))
		equal(f, "counter", f.readCounter(table), 1)
		equal(f, "rows", len(f.rows(f.process())), 0)
	}),
	inEachCell("EnteringAgainDoesNotWaitForTheGuardedTransaction", func(f *fixture) {
		r := f.registry(ttl)
		enter := func(ctx context.Context) {
			for range 100 { // a busy machine delays some; each would wait for a second
				began := time.Now()
				again := check.Value(r.TryLock(ctx, "k"))(f)
				took := time.Since(began)
				f.must(again.Unlock(ctx))
				if took < 3*short {
					return
				}
			}
			f.Errorf("entering again always takes %v", 3*short)
		}
		f.must(r.ExecuteLockedTx(f.Context(), "k", f.cell.DB.DB, nil, func(ctx context.Context, _ *sql.Tx) error {
			enter(ctx)
			return nil
		}))
		if f.cell.Dialect == dialect.SQLite() {
			return // each gives up after a moment, because there is no other writer meanwhile
		}
		lease, tx := f.acquire(f.obtain(r)), f.begin(nil)
		f.must(tx.guard(f.Context(), lease))
		enter(lease.Context())
		f.must(tx.commit())
		f.must(lease.Unlock(f.Context()))
	}),
	inEachCell("ExecuteLockedTxRollsBack", func(f *fixture) {
		r, table := f.registry(ttl), f.counter()
		failure := errors.New("work")
		f.is(r.ExecuteLockedTx(f.Context(), "k", f.cell.DB.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
			return errors.Join(f.addOne(ctx, tx, table), failure)
		}), failure)
		func() {
			defer func() { equal(f, "panic", recover(), any("stop")) }()
			_ = r.ExecuteLockedTx(f.Context(), "k", f.cell.DB.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
				f.must(f.addOne(ctx, tx, table))
				panic("stop")
			})
		}()
		equal(f, "counter", f.readCounter(table), 0)
		equal(f, "rows", len(f.rows(f.process())), 0)
		f.is(r.ExecuteLockedTx(f.Context(), "k", nil, nil, nil), sqllock.ErrInvalid)
	}),
	once("ExecuteLockedTxForLimitsTheWait", func(f *fixture) {
		l, table := f.lock(ttl), f.counter()
		lease := f.acquire(f.lock(ttl))
		for _, wait := range []time.Duration{0, short} {
			f.is(l.ExecuteLockedTxFor(f.Context(), wait, f.cell.DB.DB, nil, func(context.Context, *sql.Tx) error {
				panic("must not run")
			}), sqllock.ErrNotAcquired)
		}
		f.must(lease.Unlock(f.Context()))
		f.must(l.ExecuteLockedTxFor(f.Context(), ttl, f.cell.DB.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
			return f.addOne(ctx, tx, table)
		}))
		equal(f, "counter", f.readCounter(table), 1)
		f.is(l.ExecuteLockedTxFor(f.Context(), -1, f.cell.DB.DB, nil, func(context.Context, *sql.Tx) error { return nil }), sqllock.ErrInvalid)
		f.is(l.ExecuteLockedTxFor(f.Context(), 0, nil, nil, nil), sqllock.ErrInvalid)
	}),
	inEachCell("ExecuteLockedTxUsesTheOptionsOfTheTransaction", func(f *fixture) {
		if f.cell.Dialect == dialect.SQLite() {
			return // SQLite's transactions are of one kind
		}
		r := f.registry(ttl)
		err := r.ExecuteLockedTx(f.Context(), "k", f.cell.DB.DB, &sql.TxOptions{Isolation: sql.LevelLinearizable}, func(context.Context, *sql.Tx) error {
			panic("no server has this isolation")
		})
		f.is(err, sqllock.ErrDatabase)
		if f.cell.Dialect != dialect.Postgres() {
			return // MySQL does not show the isolation of a transaction
		}
		f.must(r.ExecuteLockedTx(f.Context(), "k", f.cell.DB.DB, &sql.TxOptions{Isolation: sql.LevelRepeatableRead}, func(ctx context.Context, tx *sql.Tx) error {
			var isolation string
			f.must(tx.QueryRowContext(ctx, "SHOW transaction_isolation").Scan(&isolation))
			equal(f, "isolation", isolation, "repeatable read")
			return nil
		}))
	}),
	inEachCell("ExecuteLockedTxOfALostLeaseRollsBack", func(f *fixture) {
		table := f.counter()
		f.withTTL(func(ttl time.Duration) (longEnough bool) {
			err := f.registry(ttl).ExecuteLockedTx(f.Context(), "k", f.cell.DB.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
				if err := f.addOne(ctx, tx, table); err != nil {
					return err
				}
				longEnough = true
				<-ctx.Done()
				return nil
			})
			if longEnough {
				f.is(err, sqllock.ErrLockLost)
			}
			return longEnough
		})
		equal(f, "counter", f.readCounter(table), 0)
	}),
}

func (f *fixture) addOne(ctx context.Context, tx *sql.Tx, table string) error {
	return check.ErrorOf(tx.ExecContext(ctx, addOne(table)))
}

// An appTx is a transaction of the application: one of database/sql, or one of pgx.
type appTx interface {
	guard(ctx context.Context, lease *sqllock.Lease) error
	exec(ctx context.Context, text string) error
	commit() error
	rollback() error
}

// begin begins a transaction that lasts until it is ended. It is rolled back if the test has failed.
func (f *fixture) begin(opts *sql.TxOptions) appTx {
	f.Helper()
	tx := check.Value(f.open(context.WithoutCancel(f.Context()), opts))(f)
	f.Cleanup(func() { _ = tx.rollback() })
	if f.cell.Dialect == dialect.Postgres() {
		// Open's connections end one that is idle for 10 s, which a busy machine makes of a few calls.
		f.must(tx.exec(f.Context(), "SET LOCAL idle_in_transaction_session_timeout = 0"))
	}
	return tx
}

func (f *fixture) open(ctx context.Context, opts *sql.TxOptions) (appTx, error) {
	if f.cell.Pgx == nil {
		tx, err := f.cell.DB.BeginTx(ctx, opts)
		return sqlTx{tx}, err
	}
	var options pgx.TxOptions
	if opts != nil {
		options.IsoLevel = pgxLevels[opts.Isolation]
	}
	tx, err := f.cell.Pgx.BeginTx(ctx, options)
	return pgxTx{tx}, err
}

type sqlTx struct{ tx *sql.Tx }

func (t sqlTx) guard(ctx context.Context, lease *sqllock.Lease) error { return lease.Guard(ctx, t.tx) }
func (t sqlTx) commit() error                                         { return t.tx.Commit() }
func (t sqlTx) rollback() error                                       { return t.tx.Rollback() }

func (t sqlTx) exec(ctx context.Context, text string) error {
	return check.ErrorOf(t.tx.ExecContext(ctx, text))
}

type pgxTx struct{ tx pgx.Tx }

func (t pgxTx) guard(ctx context.Context, lease *sqllock.Lease) error {
	return sqllock.GuardFunc(ctx, lease, t.tx.QueryRow)
}

func (t pgxTx) commit() error   { return t.tx.Commit(context.Background()) }
func (t pgxTx) rollback() error { return t.tx.Rollback(context.Background()) }

func (t pgxTx) exec(ctx context.Context, text string) error {
	return check.ErrorOf(t.tx.Exec(ctx, text))
}

var pgxLevels = map[sql.IsolationLevel]pgx.TxIsoLevel{
	sql.LevelReadCommitted:  pgx.ReadCommitted,
	sql.LevelRepeatableRead: pgx.RepeatableRead,
	sql.LevelSerializable:   pgx.Serializable,
}
