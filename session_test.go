package sqllock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// acquirersOf returns a pool of one connection whose session is SERIALIZABLE.
func acquirersOf(t *testing.T, db *dbtest.DB, driver string) *sqlx.DB {
	t.Helper()
	parameters := map[string]string{"default_transaction_isolation": "serializable"}
	if driver == "mysql" {
		parameters = map[string]string{"tx_isolation": "'SERIALIZABLE'"}
	}
	return limited(db.OpenDSN(t, driver, db.With(t, parameters)), 1)
}

// A session that somebody has reset is noticed: its acquisition is made again in an explicit
// transaction, the session is closed, and observers are told.
func TestASessionThatWasReset(t *testing.T) {
	t.Parallel()
	const mariaDB = "SELECT LOWER(@@tx_isolation)"
	for name, test := range map[string]struct {
		driver             string
		database           func(testing.TB) *dbtest.DB
		reset, seen, asked string
	}{
		"pgx":      {"pgx", dbtest.Postgres, "SET default_transaction_isolation = 'read committed'", "read committed", "SELECT current_setting('transaction_isolation')"},
		"postgres": {"postgres", dbtest.Postgres, "SET default_transaction_isolation = 'read committed'", "read committed", "SELECT current_setting('transaction_isolation')"},
		"mysql":    {"mysql", dbtest.MySQL, "SET SESSION tx_isolation = 'READ-COMMITTED'", "read-committed", mariaDB},
		// What it writes would be undone when the session ends.
		"mysql, autocommit": {"mysql", dbtest.MySQL, "SET SESSION autocommit = 0", "not committed", mariaDB},
		// The statement would be a part of a transaction that nobody commits.
		"mysql, a transaction that was left open": {"mysql", dbtest.MySQL, "START TRANSACTION", "not committed", mariaDB},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := test.database(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			acquirers := acquirersOf(t, db, test.driver)
			var reasons []error
			r, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{
				Acquirers: acquirers.DB, Observers: onFallbacks(func(reason error) { reasons = append(reasons, reason) }), DisableBatching: true,
			})
			must(t, err)
			acquire := func(key string) sqllock.Acquisition {
				got, err := r.Acquire(t.Context(), key, r.NewHolder(), ttl)
				must(t, err)
				if !got.Acquired {
					t.Fatalf("%s is held by %+v", key, got.Row)
				}
				return got
			}
			first := acquire("first")
			if len(reasons) > 0 {
				t.Errorf("fallback: %v", reasons)
			}

			_, err = acquirers.ExecContext(t.Context(), test.reset)
			must(t, err)
			second := acquire("second")
			if len(reasons) != 1 || !strings.Contains(reasons[0].Error(), test.seen) {
				t.Errorf("reasons %v", reasons)
			}
			// A number was drawn in the wrong transaction, too, and is not used.
			if second.Token != first.Token+2*tokensPerNumber {
				t.Errorf("token %d after %d: the row was not acquired again", second.Token, first.Token)
			}
			if third := acquire("third"); third.Token != second.Token+tokensPerNumber || len(reasons) != 1 {
				t.Errorf("token %d after %d, reasons %v", third.Token, second.Token, reasons)
			}
			var isolation string
			must(t, acquirers.GetContext(t.Context(), &isolation, test.asked))
			if isolation != "serializable" {
				t.Error("the session that was reset is still in the pool")
			}
		})
	}
}

// A batch in the wrong isolation is acquired again, too, and each caller has its lock.
func TestABatchInASessionThatWasReset(t *testing.T) {
	t.Parallel()
	t.Run("pgx", func(t *testing.T) {
		t.Parallel()
		testBatchAfterReset(t, dbtest.Postgres(t), "pgx", "SET default_transaction_isolation = 'repeatable read'")
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		testBatchAfterReset(t, dbtest.MySQL(t), "mysql", "SET SESSION tx_isolation = 'REPEATABLE-READ'")
	})
}

func testBatchAfterReset(t *testing.T, db *dbtest.DB, driver, reset string) {
	t.Helper()
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	acquirers := acquirersOf(t, db, driver)
	_, err := acquirers.ExecContext(t.Context(), reset)
	must(t, err)
	told := make(chan error, 10)
	r, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{
		Acquirers: acquirers.DB, Observers: onFallbacks(func(reason error) { told <- reason }),
	})
	must(t, err)
	const callers = 20
	tokens := make(chan int64, callers)
	for i := range callers {
		go func() {
			got, err := r.Acquire(t.Context(), string(rune('a'+i)), r.NewHolder(), ttl)
			if err != nil || !got.Acquired {
				t.Errorf("%+v, %v", got, err)
			}
			tokens <- got.Token
		}()
	}
	seen := make(map[int64]bool)
	for range callers {
		seen[<-tokens] = true
	}
	if len(seen) != callers || len(told) != 1 {
		t.Errorf("%d different tokens, %d fallbacks", len(seen), len(told))
	}
}

// Options that other databases, or other isolations, have no use for.
func TestAcquirersAndMessagesAreChecked(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	for name, c := range map[string]struct {
		dialect dialect.Dialect
		opts    sqllock.RepositoryOptions
	}{
		"acquirers of SQLite":         {dialect.SQLite(), sqllock.RepositoryOptions{Acquirers: db.DB.DB}},
		"acquirers in autocommit":     {dialect.Postgres(), sqllock.RepositoryOptions{Acquirers: db.DB.DB, Isolation: sqllock.Autocommit}},
		"acquirers in read committed": {dialect.Postgres(), sqllock.RepositoryOptions{Acquirers: db.DB.DB, Isolation: sqllock.ReadCommitted}},
		"messages of SQLite":          {dialect.SQLite(), sqllock.RepositoryOptions{MultiStatements: true}},
		"messages of PostgreSQL":      {dialect.Postgres(), sqllock.RepositoryOptions{MultiStatements: true}},
	} {
		if _, err := sqllock.NewRepository(t.Context(), db.DB.DB, c.dialect, &c.opts); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// MultiStatements needs a pool whose driver sends several statements with arguments in a message.
func TestMultiStatementsIsChecked(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) *dbtest.DB{"MariaDB": dbtest.MySQL, "Oracle's MySQL": dbtest.OracleMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := database(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			for parameters, good := range map[[2]string]bool{
				{"true", "true"}: true, {"true", "false"}: false, {"false", "true"}: false, {"false", "false"}: false,
			} {
				pool := db.OpenDSN(t, "mysql", db.With(t, map[string]string{"multiStatements": parameters[0], "interpolateParams": parameters[1]}))
				_, err := sqllock.NewRepository(t.Context(), pool.DB, db.Dialect, &sqllock.RepositoryOptions{MultiStatements: true})
				if good && err != nil || !good && (!errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), "interpolateParams=true")) {
					t.Errorf("multiStatements and interpolateParams %v: %v", parameters, err)
				}
			}
			broken := db.OpenDSN(t, "mysql", db.DSN)
			must(t, broken.Close())
			if _, err := sqllock.NewRepository(t.Context(), broken.DB, db.Dialect, &sqllock.RepositoryOptions{MultiStatements: true}); !errors.Is(err, sqllock.ErrDatabase) {
				t.Errorf("a closed pool: %v", err)
			}
		})
	}
}

// Acquirers of another table would acquire rows that are never released.
func TestAcquirersOfAnotherTable(t *testing.T) {
	t.Parallel()
	for driver, database := range map[string]func(testing.TB) *dbtest.DB{
		"pgx":   dbtest.Postgres, // two schemas of one database
		"mysql": dbtest.MySQL,
	} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			db, other := database(t), database(t)
			for _, db := range []*dbtest.DB{db, other} {
				must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			}
			for acquirers, good := range map[*dbtest.DB]bool{db: true, other: false} {
				_, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{Acquirers: acquirersOf(t, acquirers, driver).DB})
				if good && err != nil || !good && !errors.Is(err, sqllock.ErrInvalid) {
					t.Errorf("the same table: %t; error %v", good, err)
				}
			}
		})
	}
}
