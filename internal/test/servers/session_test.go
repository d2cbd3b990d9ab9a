package servers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// Over a pool of one's own a setting with which statements leave out rows, fail or begin transactions is refused,
// with its name. So is a session with autocommit=0, in each isolation: it would undo releases and renewals when it
// ends, and after the row's end there could be a second holder.
func TestSession_HostileIsRefused(t *testing.T) {
	t.Parallel()
	settings := maps.Clone(hostile)
	settings["autocommit"] = "0"
	mysqls.migrated(t, func(t *testing.T, db *dbtest.DB) {
		for name, value := range settings {
			want := "has " + name + "="
			if name == "autocommit" {
				want = "autocommit=1"
			}
			pool := db.OpenDSN(t, "mysql", db.With(t, map[string]string{name: value}))
			for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
				_, err := sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, &sqllock.RepositoryOptions{Isolation: isolation})
				if !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %v: %v", name, isolation, err)
				}
			}
		}
	})
}

// hostile are settings with which statements leave out rows, or fail, or begin transactions.
var hostile = map[string]string{"sql_select_limit": "2", "sql_safe_updates": "1", "completion_type": "1"}

// Open's sessions have the server's defaults, whatever is set for all sessions. It takes a server of its own.
func TestSession_GlobalSettingsOfMySQL(t *testing.T) {
	t.Parallel()
	s, admin := watchedServers["mysql"].run(t)
	for name, value := range hostile {
		must(t, check.ErrorOf(admin.ExecContext(t.Context(), "SET GLOBAL "+name+" = "+value)))
	}
	a, b := byName(t, "mysqllock"), byName(t, "mysqllock")
	first, second := a.opened(t, s.DSN(), openOptions{}), b.opened(t, s.DSN(), openOptions{})
	for range 2 {
		joint := check.Value(first.ObtainAll("a", "b", "c", "d", "e"))(t)
		lease := check.Value(joint.TryLock(t.Context()))(t)
		must(t, lease.Renew(t.Context()))
		must(t, lease.Unlock(t.Context()))
		for _, key := range []string{"a", "e"} {
			must(t, check.Value(second.TryLock(t.Context(), key))(t).Unlock(t.Context()))
		}
	}
}

// The application has left a transaction open on a connection of the pool that it shares with sqllock. What is
// acquired or renewed in there would be undone with it.
func TestSession_TransactionLeftOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open   func(testing.TB) *dbtest.DB
		driver string
	}{
		"MariaDB": {dbtest.MySQL, "mysql"}, "MySQL": {dbtest.OracleMySQL, "mysql"}, "TiDB": {dbtest.TiDB, "mysql"},
		"PostgreSQL, lib/pq": {dbtest.Postgres, "postgres"}, "PostgreSQL, pgx": {dbtest.Postgres, "pgx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := up(t, c.open)
			shared := db.OpenDSN(t, c.driver, db.DSN)
			shared.SetMaxOpenConns(1)
			leaveOpen := func() {
				t.Helper()
				must(t, check.ErrorOf(shared.ExecContext(t.Context(), "BEGIN")))
			}
			r := check.Value(sqllock.NewRepository(unhurried(t), shared.DB, db.Dialect, &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit}))(t)
			outside := repository(t, db, nil)
			lastsFor := func(least time.Duration) {
				t.Helper()
				row, found, err := outside.Peek(t.Context(), "k")
				must(t, err)
				if !found || row.Left < least {
					t.Errorf("%v left, found %v", row.Left, found)
				}
			}
			leaveOpen()
			lease := check.Value(newRegistry(t, r, &sqllock.RegistryOptions{TTL: ttl}).TryLock(t.Context(), "k"))(t)
			lastsFor(ttl / 2)
			leaveOpen()
			must(t, lease.RenewFor(t.Context(), 10*ttl))
			lastsFor(2 * ttl)
			leaveOpen()
			outcome, err := r.Renew(t.Context(), "k", lease.Holder(), 20*ttl)
			if must(t, err); !outcome {
				t.Error("not renewed")
			}
			lastsFor(11 * ttl)
			must(t, lease.Unlock(t.Context()))
		})
	}
}

// Sessions may be read-only although the server is not. Open says so; over a pool of one's own the first acquisition
// does, and Close has nothing to delete.
func TestSession_ReadOnly(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.Postgres)
	dsn := db.With(t, map[string]string{"default_transaction_read_only": "on"})
	for _, o := range []opener{byName(t, "pgxlock"), byName(t, "pqlock")} {
		for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
			_, err := o.open(t.Context(), dsn, openOptions{repository: sqllock.RepositoryOptions{Isolation: isolation}})
			if !errors.Is(err, sqllock.ErrReadOnly) {
				t.Errorf("%s, %v: %v", o.name, isolation, err)
			}
		}
	}
	for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
		r := check.Value(sqllock.NewRepository(unhurried(t), db.OpenDSN(t, "pgx", dsn).DB, db.Dialect, &sqllock.RepositoryOptions{Isolation: isolation}))(t)
		registry := check.Value(sqllock.NewRegistry(r, nil))(t)
		if _, err := registry.TryLock(t.Context(), "k"); !errors.Is(err, sqllock.ErrReadOnly) {
			t.Errorf("%v: %v", isolation, err)
		}
		if err := registry.Close(context.Background()); err != nil {
			t.Errorf("%v: Close: %v", isolation, err)
		}
	}
}

// acquirersOf returns a pool of one connection whose session is SERIALIZABLE.
func acquirersOf(t *testing.T, db *dbtest.DB, driver string) *sqlx.DB {
	t.Helper()
	parameters := map[string]string{"default_transaction_isolation": "serializable"}
	if driver == "mysql" {
		parameters = map[string]string{"tx_isolation": "'SERIALIZABLE'"}
	}
	return limited(db.OpenDSN(t, driver, db.With(t, parameters)), 1)
}

// A session that was reset is noticed: its acquisition is made again in an explicit transaction, the session is
// closed, and observers are told. So is a batch, of which each caller has its lock.
func TestSession_Reset(t *testing.T) {
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
			db := up(t, test.database)
			acquirers := acquirersOf(t, db, test.driver)
			var reasons []error
			r, err := sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{
				Acquirers: acquirers.DB, Observers: onFallbacks(func(reason error) { reasons = append(reasons, reason) }), DisableBatching: true,
			})
			must(t, err)
			acquire := func(key string) sqllock.Acquisition {
				got := check.Value(r.Acquire(t.Context(), key, r.NewHolder(), ttl))(t)
				if !got.Acquired {
					t.Fatalf("%s is held by %+v", key, got.Row)
				}
				return got
			}
			first := acquire("first")
			check.Same(t, "fallback", reasons, nil)

			must(t, check.ErrorOf(acquirers.ExecContext(t.Context(), test.reset)))
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
			check.Equal(t, "isolation of the session after the one that was reset", isolation, "serializable")
			must(t, check.ErrorOf(acquirers.ExecContext(t.Context(), test.reset)))
			acquireTogether(t, db, acquirers)
		})
	}
}

// acquireTogether has callers acquire in batches, over a session that was reset.
func acquireTogether(t *testing.T, db *dbtest.DB, acquirers *sqlx.DB) {
	t.Helper()
	told := make(chan error, 10)
	r, err := sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{
		Acquirers: acquirers.DB, Observers: onFallbacks(func(reason error) { told <- reason }),
	})
	must(t, err)
	const callers = 20
	tokens := make(chan int64, callers)
	for i := range callers {
		go func() {
			got, err := r.Acquire(t.Context(), fmt.Sprint("batch ", i), r.NewHolder(), ttl)
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

// MultiStatements needs a pool whose driver sends several statements with arguments in a message.
func TestSession_MultiStatements(t *testing.T) {
	t.Parallel()
	databases{"MariaDB": dbtest.MySQL, "Oracle's MySQL": dbtest.OracleMySQL}.migrated(t, func(t *testing.T, db *dbtest.DB) {
		for parameters, good := range map[[2]string]bool{
			{"true", "true"}: true, {"true", "false"}: false, {"false", "true"}: false, {"false", "false"}: false,
		} {
			pool := db.OpenDSN(t, "mysql", db.With(t, map[string]string{"multiStatements": parameters[0], "interpolateParams": parameters[1]}))
			_, err := sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, &sqllock.RepositoryOptions{MultiStatements: true})
			if good && err != nil || !good && (!errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), "interpolateParams=true")) {
				t.Errorf("multiStatements and interpolateParams %v: %v", parameters, err)
			}
		}
		broken := db.OpenDSN(t, "mysql", db.DSN)
		must(t, broken.Close())
		is(t, check.ErrorOf(sqllock.NewRepository(unhurried(t), broken.DB, db.Dialect, &sqllock.RepositoryOptions{MultiStatements: true})), sqllock.ErrDatabase)
	})
}

// Acquirers of another table would acquire rows that are never released.
func TestSession_AcquirersOfAnotherTable(t *testing.T) {
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
				_, err := sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{Acquirers: acquirersOf(t, acquirers, driver).DB})
				if good && err != nil || !good && !errors.Is(err, sqllock.ErrInvalid) {
					t.Errorf("the same table: %t; error %v", good, err)
				}
			}
		})
	}
}

// A session that translates text writes another key than one that does not.
func TestSession_ThatTranslatesTextIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		open                    func(testing.TB) *dbtest.DB
		driver, parameter, cure string
	}{
		// lib/pq asks for UTF8, and refuses any other encoding; pgx leaves it to the database.
		"PostgreSQL": {latin1Database, "pgx", "application_name=pgx", "client_encoding=UTF8"},
		"MariaDB":    {dbtest.MySQL, "mysql", "charset=latin1", "charset=utf8mb4"},
		"MySQL":      {dbtest.OracleMySQL, "mysql", "charset=latin1", "charset=utf8mb4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := up(t, test.open)
			with := func(parameter string) string {
				name, value, _ := strings.Cut(parameter, "=")
				return db.With(t, map[string]string{name: value})
			}
			pool := db.OpenDSN(t, test.driver, with(test.parameter))
			own := []sqllock.RepositoryOptions{{Keys: sqllock.PlainKeys}, {Region: "größe"}}
			for _, opts := range own {
				_, err := sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, &opts)
				if !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), test.cure) {
					t.Error(err)
				}
			}
			must(t, check.ErrorOf(sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, nil)))
			for driver, pool := range driversOf(t, db, with(test.cure)) {
				for _, opts := range own {
					if _, err := sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, &opts); err != nil {
						t.Error(driver, err)
					}
				}
			}
		})
	}
}

// An administrator may allow statements less time than they wait for a row. What ends then is a wait, and no error of
// the database.
func TestSession_TimeLimits(t *testing.T) {
	t.Parallel()
	const postgres, mariaDB = "SET statement_timeout = ", "SET max_statement_time = "
	for name, test := range map[string]struct {
		database func(testing.TB) *dbtest.DB
		driver   string
		set      string // sets the limit
		limit    string
	}{
		"pgx":     {dbtest.Postgres, "pgx", postgres, "150"},
		"lib/pq":  {dbtest.Postgres, "postgres", postgres, "150"},
		"MariaDB": {dbtest.MySQL, "mysql", mariaDB, "0.15"},
	} {
		for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
			t.Run(name+", "+isolation.String(), func(t *testing.T) {
				t.Parallel()
				db := up(t, test.database)
				pool := limited(db.OpenDSN(t, test.driver, db.DSN), 1)
				limit := func(value string) {
					must(t, check.ErrorOf(pool.ExecContext(t.Context(), test.set+value)))
				}
				r := check.Value(sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, &sqllock.RepositoryOptions{Isolation: isolation}))(t)
				registry := newRegistry(t, r, &sqllock.RegistryOptions{TTL: never})
				must(t, check.ErrorOf(r.Acquire(t.Context(), "expired", r.NewHolder(), ttl)))
				db.Shorten(t, "INT_LOCK", int(2*ttl.Seconds())+1)
				held := check.Value(registry.TryLock(t.Context(), "held"))(t)

				pin := check.Value(db.DB.BeginTxx(t.Context(), nil))(t)
				defer func() { _ = pin.Rollback() }()
				must(t, check.ErrorOf(pin.ExecContext(t.Context(), "SELECT 1 FROM INT_LOCK FOR UPDATE")))
				// On a slow machine the limit can end what does not wait, too: that is an ErrDatabase.
				within := func(want error, call func() error) {
					for n := 1; ; n++ {
						limit(test.limit) // the connection may be another one
						err := call()
						if errors.Is(err, want) {
							return
						}
						if t.Logf("%v, want %v", err, want); n == 100 || !errors.Is(err, sqllock.ErrDatabase) {
							t.Fatal("it was never what it should be")
						}
					}
				}
				within(sqllock.ErrNotAcquired, func() error { return check.ErrorOf(registry.TryLock(t.Context(), "expired")) })
				within(sqllock.ErrPinned, func() error { return held.Renew(t.Context()) })
				must(t, pin.Rollback())
				limit("0") // a slow machine may need longer
				must(t, held.Renew(t.Context()))
				must(t, check.Value(registry.Lock(t.Context(), "expired"))(t).Unlock(t.Context()))
				must(t, held.Unlock(t.Context()))
			})
		}
	}
}
