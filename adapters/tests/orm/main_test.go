package orm_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/pagecode"
	"github.com/sqllock/sqllock/migrations"
)

var must = check.Must

// prepare makes the lock table, and an account with a balance of 100.
func prepare(t *testing.T, db *dbtest.DB) {
	t.Helper()
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	for _, text := range []string{
		"CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance INTEGER NOT NULL)",
		"INSERT INTO accounts (id, balance) VALUES (1, 100)",
	} {
		must(t, check.ErrorOf(db.DB.ExecContext(t.Context(), text)))
	}
}

// registryOn returns a registry on the pool of a library.
func registryOn(ctx context.Context, db *sql.DB, d dialect.Dialect) (*sqllock.Registry, error) {
	if d == dialect.Postgres() {
		return registryOnPostgres(ctx, db)
	}
	repository, err := sqllock.NewRepository(ctx, db, d, nil)
	if err != nil {
		return nil, err
	}
	return sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: time.Minute, NoRenew: true})
}

func registryOnPostgres(ctx context.Context, db *sql.DB) (*sqllock.Registry, error) {
	repository, err := sqllock.NewRepository(ctx, db, dialect.Postgres(), nil) // db is a *sql.DB or a *sqlx.DB
	if err != nil {
		return nil, err
	}
	return sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: 30 * time.Second})
}

// guarded checks that withdraw, which takes 10 from the account in a transaction that it guards,
// does so under the lock, and does not once the lock has another holder.
func guarded(t *testing.T, db *dbtest.DB, pool *sql.DB, withdraw func(ctx context.Context, lease *sqllock.Lease) error) {
	t.Helper()
	registry := check.Value(registryOn(dbtest.Unhurried(t.Context()), pool, db.Dialect))(t)
	t.Cleanup(func() { must(t, registry.Close(context.Background())) })
	lease := check.Value(registry.TryLock(t.Context(), "account/1"))(t)
	if db.Dialect == dialect.Postgres() {
		checkPinned(t, db, lease, withdraw)
	} else {
		must(t, withdraw(t.Context(), lease))
	}
	checkBalance(t, db, 90)
	check.Equal(t, "found", check.Value(registry.Repository().Delete(t.Context(), "account/1", lease.Holder()))(t), true)
	check.Is(t, withdraw(t.Context(), lease), sqllock.ErrLockLost)
	checkBalance(t, db, 90)
	check.Is(t, lease.Unlock(t.Context()), sqllock.ErrLockLost)
}

// checkPinned has withdraw wait for the account after it has guarded its transaction, and checks that
// the guard is in that transaction: the row is pinned until it commits.
func checkPinned(t *testing.T, db *dbtest.DB, lease *sqllock.Lease, withdraw func(ctx context.Context, lease *sqllock.Lease) error) {
	t.Helper()
	other := check.Value(db.DB.BeginTx(t.Context(), nil))(t)
	t.Cleanup(func() { _ = other.Rollback() })
	var session int
	must(t, other.QueryRowContext(t.Context(), "SELECT pg_backend_pid() FROM accounts WHERE id = 1 FOR UPDATE").Scan(&session))
	withdrawn := check.Begin(func() error { return withdraw(t.Context(), lease) })
	for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
		must(t, db.DB.GetContext(t.Context(), &waiting,
			"SELECT COUNT(*) FROM pg_stat_activity WHERE CAST($1 AS INTEGER) = ANY (pg_blocking_pids(pid))", session))
		select {
		case err := <-withdrawn:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
	}
	check.Is(t, lease.Renew(t.Context()), sqllock.ErrPinned)
	must(t, other.Rollback())
	must(t, <-withdrawn)
}

// checkLocked checks withdraw, which takes 10 from the account under a lock of its own.
func checkLocked(t *testing.T, db *dbtest.DB, pool *sql.DB, withdraw func(ctx context.Context, registry *sqllock.Registry) error) {
	t.Helper()
	registry := check.Value(registryOn(dbtest.Unhurried(t.Context()), pool, db.Dialect))(t)
	t.Cleanup(func() { must(t, registry.Close(context.Background())) })
	must(t, withdraw(t.Context(), registry))
	checkBalance(t, db, 90)
	rows, err := registry.Repository().List(t.Context())
	if err != nil || len(rows) != 0 {
		t.Error(rows, err)
	}
}

func checkBalance(t *testing.T, db *dbtest.DB, want int) {
	t.Helper()
	var got int
	must(t, db.DB.GetContext(t.Context(), &got, "SELECT balance FROM accounts WHERE id = 1"))
	check.Equal(t, "balance", got, want)
}

// TestPages finds each piece of Go of the page in the code that is run here.
func TestPages(t *testing.T) {
	t.Parallel()
	pagecode.Check(t, "../../../docs/integrations.md", "*_test.go")
}
