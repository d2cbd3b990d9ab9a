package contract

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
)

// An appTx is a transaction of the application: one of database/sql, or one of pgx.
type appTx interface {
	guard(ctx context.Context, lease *sqllock.Lease) error
	exec(ctx context.Context, text string) error
	commit() error
	rollback() error
}

// begin begins a transaction that lasts until it is ended. It is rolled back if the test has
// failed.
func (f *fixture) begin(opts *sql.TxOptions) appTx {
	f.Helper()
	tx := check.Value(f.open(context.WithoutCancel(f.Context()), opts))(f)
	f.Cleanup(func() { _ = tx.rollback() })
	if f.cell.Dialect.Name == "postgres" {
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
