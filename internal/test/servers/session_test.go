package servers_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/transaction"
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

// The server takes only short messages. What is sent for many rows is divided. It takes servers of its own.
func TestSession_ShortMessages(t *testing.T) {
	t.Parallel()
	const size = "16384"
	limitedServer := func(start func(context.Context, string) (*server.Server, error)) func(*testing.T) (string, *sqlx.DB) {
		return func(t *testing.T) (string, *sqlx.DB) {
			t.Helper()
			w := watchedServers["mysql"]
			w.start = start
			s, admin := w.run(t)
			must(t, check.ErrorOf(admin.ExecContext(t.Context(), "SET GLOBAL max_allowed_packet = "+size)))
			return s.DSN(), check.Value(sqlx.Connect("mysql", s.DSN()))(t)
		}
	}
	for name, database := range map[string]func(*testing.T) (dsn string, app *sqlx.DB){
		"MariaDB":      limitedServer(server.StartMariaDB),
		"Oracle MySQL": limitedServer(server.StartOracleMySQL),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn, app := database(t)
			t.Cleanup(func() { must(t, app.Close()) })
			opened := byName(t, "mysqllock").opened(t, dsn+"?maxAllowedPacket="+size, openOptions{registry: sqllock.RegistryOptions{TTL: never, DisableNames: true}})
			own := newRegistry(t, check.Value(sqllock.NewRepository(unhurried(t), limited(app, 8).DB, dialect.MySQL(), nil))(t), &sqllock.RegistryOptions{TTL: never, DisableNames: true, NoRenew: true})
			for kind, registry := range map[string]*sqllock.Registry{"Open": opened, "a pool of one's own": own} {
				t.Run(kind, func(t *testing.T) { lockMany(t, 1000, registry, app) })
			}
		})
	}
}

// The driver of a pool of one's own sends only short messages, whatever the server takes.
func TestSession_ShortMessagesOfTheDriver(t *testing.T) {
	t.Parallel()
	mysqls.migrated(t, func(t *testing.T, db *dbtest.DB) {
		for _, parameters := range []map[string]string{{"maxAllowedPacket": "16384"}, {"maxAllowedPacket": "16384", "interpolateParams": "true"}} {
			pool := limited(db.OpenDSN(t, "mysql", db.With(t, parameters)), 8)
			r := check.Value(sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, nil))(t)
			lockMany(t, 1000, newRegistry(t, r, &sqllock.RegistryOptions{TTL: never, DisableNames: true, NoRenew: true}), db.DB)
		}
	})
}

// A limit to idle transactions ends those of sqllock, in a process that is stopped for long, and they are run again. It
// ends those of the application only if its own pool has the limit, and Guard says why.
func TestSession_IdleTransactions(t *testing.T) {
	t.Parallel()
	const pid, processes = "SELECT pg_backend_pid()", "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = %d"
	const postgres = "SET idle_in_transaction_session_timeout = 1"
	for name, c := range map[string]struct {
		database func(testing.TB) *dbtest.DB
		driver   string
		limit    string // sets it
		id, left string // asks for the session, and whether it is there
		says     string // of the error of Guard
	}{
		"pgx":    {dbtest.Postgres, "pgx", postgres, pid, processes, "it was idle, or open, for too long"},
		"lib/pq": {dbtest.Postgres, "postgres", postgres, pid, processes, "the connection broke"},
		"MariaDB": {
			dbtest.MySQL, "mysql", "SET idle_transaction_timeout = 1", "SELECT CONNECTION_ID()",
			"SELECT COUNT(*) FROM information_schema.processlist WHERE id = %d", "the connection broke",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := up(t, c.database)
			pool := limited(db.OpenDSN(t, c.driver, db.DSN), 1)
			awaitEnd := func(tx *sql.Tx) {
				var id, left int64
				must(t, tx.QueryRowContext(t.Context(), c.id).Scan(&id))
				_, _ = tx.ExecContext(t.Context(), c.limit) // may be over before its answer is read
				for left = 1; left > 0; {
					must(t, db.DB.GetContext(t.Context(), &left, fmt.Sprintf(c.left, id)))
				}
			}
			runs, d := 0, sqltext.Of(db.Dialect)
			must(t, check.ErrorOf(transaction.Pool{DB: pool.DB, Dialect: &d}.Run(t.Context(), nil, func(tx *transaction.Tx) error {
				if runs++; runs == 1 {
					awaitEnd(tx.Tx)
				}
				return check.ErrorOf(tx.ExecContext(t.Context(), "SELECT 1"))
			})))
			check.Equal(t, "times it was run", runs, 2)

			lease := check.Value(newRegistry(t, repository(t, db, nil), &sqllock.RegistryOptions{TTL: never, NoRenew: true}).TryLock(t.Context(), "k"))(t)
			tx := check.Value(pool.BeginTx(t.Context(), nil))(t)
			awaitEnd(tx)
			err := lease.Guard(t.Context(), tx)
			is(t, err, sqllock.ErrDatabase)
			check.Contains(t, err.Error(), c.says)
			_ = tx.Rollback() // it is over
		})
	}
}

// Locks do not depend on how a server of MySQL or MariaDB reads texts, quotes and operators.
func TestSession_SQLModes(t *testing.T) {
	t.Parallel()
	both := []string{"", "ANSI_QUOTES", "PAD_CHAR_TO_FULL_LENGTH", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "IGNORE_SPACE", "HIGH_NOT_PRECEDENCE", "TRADITIONAL", "ANSI", "NO_UNSIGNED_SUBTRACTION"}
	for name, c := range map[string]struct {
		database func(testing.TB) *dbtest.DB
		modes    []string
	}{
		"MariaDB": {dbtest.MySQL, append(both, "EMPTY_STRING_IS_NULL", "ORACLE", "SIMULTANEOUS_ASSIGNMENT", "TIME_ROUND_FRACTIONAL", "MSSQL", "DB2", "POSTGRESQL")},
		"MySQL":   {dbtest.OracleMySQL, append(both, "TIME_TRUNCATE_FRACTIONAL")},
	} {
		for _, mode := range c.modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				db := up(t, c.database)
				dsn := db.With(t, map[string]string{"sql_mode": "'" + mode + "'"})
				app := limited(db.OpenDSN(t, "mysql", dsn), 8)
				registries := map[string]*sqllock.Registry{
					"Open":                byName(t, "mysqllock").opened(t, dsn, openOptions{registry: sqllock.RegistryOptions{TTL: never}}),
					"a pool of one's own": newRegistry(t, check.Value(sqllock.NewRepository(unhurried(t), app.DB, dialect.MySQL(), nil))(t), &sqllock.RegistryOptions{TTL: never, NoRenew: true}),
				}
				for kind, registry := range registries {
					t.Run(kind, func(t *testing.T) { lockMany(t, 20, registry, app) })
				}
			})
		}
	}
}

// lockMany locks many keys in all ways that have statements for many rows.
func lockMany(t *testing.T, many int, registry *sqllock.Registry, app *sqlx.DB) {
	t.Helper()
	keys := make([]string, many)
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	r := registry.Repository()

	var all sync.WaitGroup // in batches
	holders := make([]string, many)
	for i, key := range keys {
		all.Go(func() {
			holder := r.NewHolder()
			if got, err := r.Acquire(t.Context(), key, holder, never); err != nil || !got.Acquired {
				t.Errorf("%s: acquired %v, %v", key, got.Acquired, err)
			}
			holders[i] = holder
		})
	}
	all.Wait()
	check.Equal(t, "rows", len(check.Value(r.PeekAll(t.Context(), keys...))(t)), many)
	for i, key := range keys[:many/2] {
		all.Go(func() { must(t, check.ErrorOf(r.Delete(t.Context(), key, holders[i]))) })
	}
	all.Wait()
	must(t, check.ErrorOf(app.ExecContext(t.Context(), "UPDATE INT_LOCK SET EXPIRED_AFTER = '2000-01-01'")))
	check.Equal(t, "expired", check.Value(r.DeleteExpired(t.Context()))(t), int64(many-many/2))

	lease := check.Value(obtainAll(t, registry, keys...).TryLock(t.Context()))(t)
	is(t, check.ErrorOf(obtain(t, registry, keys[many-1]).TryLock(t.Context())), sqllock.ErrNotAcquired)
	must(t, lease.Renew(t.Context()))
	tx := check.Value(app.BeginTxx(t.Context(), nil))(t)
	must(t, lease.Guard(t.Context(), tx))
	must(t, tx.Rollback())
	must(t, lease.Unlock(t.Context()))

	check.Value(obtainAll(t, registry, keys...).TryLock(t.Context()))(t)
	must(t, r.ReleaseAll(t.Context()))
	check.Equal(t, "rows that are left", len(check.Value(r.List(t.Context()))(t)), 0)
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
			lease := check.Value(newRegistry(t, r, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true}).TryLock(t.Context(), "k"))(t)
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
		// real time: nothing can be acquired
		registry := check.Value(sqllock.NewRegistry(r, nil))(t)
		if _, err := registry.TryLock(t.Context(), "k"); !errors.Is(err, sqllock.ErrReadOnly) {
			t.Errorf("%v: %v", isolation, err)
		}
		if err := registry.Close(context.Background()); err != nil {
			t.Errorf("%v: Close: %v", isolation, err)
		}
	}
}

// A proxy that balances reads, as Pgpool-II does, sends a query to a standby unless one of its functions is volatile.
// A standby is read-only whatever the primary is.
func TestSession_ReadOnlyIsAskedOfThePrimary(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t)
	question := sqltext.Of(db.Dialect).Statements(dialect.Spring7, sqltext.Names{}).ReadOnly
	var volatile int
	for _, call := range regexp.MustCompile(`(\w+)\(`).FindAllStringSubmatch(question, -1) {
		var n int
		must(t, db.DB.GetContext(t.Context(), &n, "SELECT COUNT(*) FROM pg_proc WHERE proname = $1 AND provolatile = 'v'", call[1]))
		volatile += n
	}
	if volatile == 0 {
		t.Errorf("no function of it is volatile: %s", question)
	}
}

// A session that has become read-only leaves the pool, as that of a cluster's former primary must: the next one may lead to
// another server. The error says why.
func TestSession_BecomesReadOnly(t *testing.T) {
	t.Parallel()
	dbtest.Databases{"PostgreSQL": dbtest.Postgres, "MariaDB": dbtest.MySQL, "Oracle's MySQL": dbtest.OracleMySQL}.Each(t, func(t *testing.T, db *dbtest.DB) {
		must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
		driver, refuse := "pgx", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY" // lib/pq begins each transaction as READ WRITE
		if db.Name == "mysql" {
			driver, refuse = "mysql", "SET SESSION TRANSACTION READ ONLY"
		}
		for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.ReadCommitted, sqllock.Autocommit} {
			pool := db.OpenDSN(t, driver, db.DSN)
			pool.SetMaxOpenConns(1)
			r := check.Value(sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, &sqllock.RepositoryOptions{Isolation: isolation}))(t)
			registry := check.Value(sqllock.NewRegistry(r, &sqllock.RegistryOptions{TTL: time.Hour, NoRenew: true}))(t)
			for what, try := range map[string]func() error{
				"acquire": func() error { return check.ErrorOf(registry.TryLock(t.Context(), fmt.Sprint(isolation))) },
				"acquire jointly": func() error {
					return check.ErrorOf(obtainAll(t, registry, fmt.Sprint(isolation, 1), fmt.Sprint(isolation, 2)).TryLock(t.Context()))
				},
			} {
				must(t, check.ErrorOf(pool.ExecContext(t.Context(), refuse)))
				is(t, try(), sqllock.ErrReadOnly)
				if err := try(); err != nil {
					t.Errorf("%v: %s over the next session: %v", isolation, what, err)
				}
			}
		}
	})
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

// An administrator may end statements by KILL QUERY or pg_cancel_backend. What ends then is a wait, and no error of the
// database: it is waited again, or the lock is not acquired this time.
func TestSession_StatementsThatAreKilled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		database func(testing.TB) *dbtest.DB
		driver   string
		opener   string
	}{
		"pgx":                     {database: dbtest.Postgres, driver: "pgx"},
		"lib/pq":                  {database: dbtest.Postgres, driver: "postgres"},
		"MariaDB":                 {database: dbtest.MySQL, driver: "mysql"},
		"Oracle MySQL":            {database: dbtest.OracleMySQL, driver: "mysql"},
		"pqlock":                  {database: dbtest.Postgres, opener: "pqlock"},
		"mysqllock":               {database: dbtest.MySQL, opener: "mysqllock"},
		"mysqllock, Oracle MySQL": {database: dbtest.OracleMySQL, opener: "mysqllock"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := up(t, c.database)
			dsn, kill := killable(t, db)
			var registry *sqllock.Registry
			if c.opener != "" {
				registry = byName(t, c.opener).opened(t, dsn, openOptions{registry: sqllock.RegistryOptions{TTL: never, DisableNames: true, NoRenew: true}})
			} else {
				r := check.Value(sqllock.NewRepository(unhurried(t), limited(db.OpenDSN(t, c.driver, dsn), 4).DB, db.Dialect, nil))(t)
				registry = newRegistry(t, r, &sqllock.RegistryOptions{TTL: never, DisableNames: true, NoRenew: true})
			}
			r := registry.Repository()
			check.Equal(t, "acquired", check.Value(r.Acquire(t.Context(), "expired", r.NewHolder(), ttl))(t).Acquired, true)
			db.Shorten(t, "INT_LOCK", int(2*ttl.Seconds())+1)
			for call, run := range map[string]func(*sqllock.Lease) error{
				"Renew":   func(l *sqllock.Lease) error { return l.Renew(t.Context()) },
				"Unlock":  func(l *sqllock.Lease) error { return l.Unlock(t.Context()) },
				"Delete":  func(l *sqllock.Lease) error { return check.ErrorOf(r.Delete(t.Context(), l.Key(), l.Holder())) },
				"TryLock": func(*sqllock.Lease) error { return check.ErrorOf(registry.TryLock(t.Context(), "expired")) },
			} {
				lease := check.Value(registry.TryLock(t.Context(), call))(t)
				pin := check.Value(db.Open(t).BeginTxx(t.Context(), nil))(t)
				must(t, check.ErrorOf(pin.ExecContext(t.Context(), "SELECT 1 FROM INT_LOCK FOR UPDATE")))
				ended := check.Begin(func() error { return run(lease) })
				kill()
				if call == "TryLock" {
					check.Is(t, <-ended, sqllock.ErrNotAcquired)
				}
				must(t, pin.Rollback())
				if call == "TryLock" {
					continue
				}
				if err := <-ended; err != nil {
					t.Errorf("%s: %v", call, err)
				}
			}
		})
	}
}

// killable returns a DSN, and a function that ends the next statement about the lock table over it, but not its session.
func killable(t *testing.T, db *dbtest.DB) (dsn string, kill func()) {
	t.Helper()
	dsn, of, end := db.DSN, "id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE '%INT_LOCK%'", "KILL QUERY %d"
	admin := limited(db.Open(t), 1)
	if db.Name == "postgres" {
		name := rand.Text()
		dsn = db.With(t, map[string]string{"application_name": name})
		of = "pid FROM pg_stat_activity WHERE application_name = '" + name + "' AND state = 'active' AND wait_event_type = 'Lock'"
		end = "SELECT pg_cancel_backend(%d)"
	}
	return dsn, func() {
		for {
			var ids []int64
			must(t, admin.SelectContext(t.Context(), &ids, "SELECT "+of))
			for _, id := range ids {
				_, _ = admin.ExecContext(t.Context(), fmt.Sprintf(end, id)) // it may have ended
			}
			if len(ids) > 0 {
				return
			}
			time.Sleep(time.Millisecond)
		}
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
				registry := newRegistry(t, r, &sqllock.RegistryOptions{TTL: never, NoRenew: true})
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
