package servers_test

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/mysqllock"
	"github.com/sqllock/sqllock/drivers/notify"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/drivers/pqlock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/observe"
)

// Of several hosts Open chooses the primary, also if a standby answers first, and so does its listener. A standby
// alone is refused. It takes servers of its own.
func TestOpen_ChoosesThePrimary(t *testing.T) {
	t.Parallel()
	dbtest.OwnServers(t)
	primary, standby := postgresPair(t)
	db := check.Value(sqlx.Connect("pgx", primary.DSN()))(t)
	must(t, migrations.Up(t.Context(), db.DB, dialect.Postgres(), nil))
	must(t, db.Close())

	first := check.Value(url.Parse(standby.DSN()))(t)
	second := check.Value(url.Parse(primary.DSN()))(t)
	dsn := "host=127.0.0.1,127.0.0.1 port=" + first.Port() + "," + second.Port() + " user=postgres dbname=postgres sslmode=prefer connect_timeout=60"
	for _, o := range []opener{byName(t, "pgxlock"), byName(t, "pqlock")} {
		for _, wake := range []bool{false, true} {
			registry := o.opened(t, dsn, openOptions{registry: sqllock.RegistryOptions{TTL: never}, wake: wake})
			once(t, obtain(t, registry, o.name).TryLock)
		}
		for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.ReadCommitted} {
			_, err := o.open(t.Context(), standby.DSN(), openOptions{repository: sqllock.RepositoryOptions{Isolation: isolation}})
			if !errors.Is(err, sqllock.ErrReadOnly) {
				t.Errorf("%s: a standby alone, %v: %v", o.name, isolation, err)
			}
		}
	}
}

// An opener is the Open of one package, and a database for it.
type opener struct {
	name     string
	database func(testing.TB) *dbtest.DB
	open     func(ctx context.Context, dsn string, o openOptions) (*sqllock.Registry, error)
}

// openOptions are those that all four packages have, or most.
type openOptions struct {
	repository sqllock.RepositoryOptions
	registry   sqllock.RegistryOptions
	wake       bool
	hurried    bool // see [unhurried]
	migrate    dialect.Migrate
}

func openPgx(ctx context.Context, dsn string, o openOptions) (*sqllock.Registry, error) {
	return pgxlock.Open(ctx, dsn, &pgxlock.Options{Repository: o.repository, Registry: o.registry, Wake: o.wake, Migrate: o.migrate})
}

func openPq(ctx context.Context, dsn string, o openOptions) (*sqllock.Registry, error) {
	return pqlock.Open(ctx, dsn, &pqlock.Options{Repository: o.repository, Registry: o.registry, Wake: o.wake, Migrate: o.migrate})
}

func openMySQL(ctx context.Context, dsn string, o openOptions) (*sqllock.Registry, error) {
	return mysqllock.Open(ctx, dsn, &mysqllock.Options{Repository: o.repository, Registry: o.registry, Wake: o.wake, Migrate: o.migrate})
}

func openSQLite(ctx context.Context, dsn string, o openOptions) (*sqllock.Registry, error) {
	return sqlitelock.Open(ctx, dsn, &sqlitelock.Options{Repository: o.repository, Registry: o.registry})
}

var openers = []opener{
	{"sqlitelock", dbtest.SQLite, openSQLite},
	{"pgxlock", dbtest.Postgres, openPgx},
	{"pqlock", dbtest.Postgres, openPq},
	{"mysqllock", dbtest.MySQL, openMySQL},
	{"mysqllock, Oracle's server", dbtest.OracleMySQL, openMySQL},
	{"pgxlock, PgBouncer", dbtest.PgBouncer, openPgx},
	{"pqlock, PgBouncer", dbtest.PgBouncer, openPq},
}

// byName returns one of the openers.
func byName(t *testing.T, name string) opener {
	t.Helper()
	i := slices.IndexFunc(openers, func(o opener) bool { return o.name == name })
	if i < 0 {
		t.Fatalf("no opener is called %s", name)
	}
	return openers[i]
}

// onServers are the openers of databases that are reached over a network, without a pooler.
func onServers(t *testing.T) []opener {
	t.Helper()
	return []opener{byName(t, "pgxlock"), byName(t, "pqlock"), byName(t, "mysqllock")}
}

// eachOpener runs a test for each of the packages, on each of its servers.
func eachOpener(t *testing.T, test func(*testing.T, opener, *dbtest.DB)) {
	t.Helper()
	for _, o := range openers {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			test(t, o, o.database(t))
		})
	}
}

// opened returns a registry that the test closes.
func (o opener) opened(t *testing.T, dsn string, options openOptions) *sqllock.Registry {
	t.Helper()
	options.registry.TTL = cmp.Or(options.registry.TTL, ttl)
	options.repository.TTL = options.registry.TTL // that of the four-column layout
	ctx := t.Context()
	if !options.hurried {
		ctx = unhurried(t)
	}
	r := check.Value(o.open(ctx, dsn, options))(t)
	t.Cleanup(func() { must(t, r.Close(context.Background())) })
	return r
}

// From an empty database to a lock, in one call. The goroutines and connections of the pools end with Close. Behind
// PgBouncer Open falls back to explicit transactions, and says so, with a DSN that says nothing about it. Elsewhere
// it does not.
func TestOpen(t *testing.T) {
	t.Parallel()
	eachOpener(t, func(t *testing.T, o opener, db *dbtest.DB) {
		t.Helper()
		var fallbacks []error
		var renewed []bool
		ends := []*observe.Observer{{LeaseEnd: func(_ context.Context, e observe.LeaseEnd) { renewed = append(renewed, e.AutoRenew) }}}
		dsn := db.DSN
		if db.Server == server.PgBouncer {
			dsn, _, _ = strings.Cut(dsn, "?")
			dsn += "?sslmode=disable"
		}
		first := o.opened(t, dsn, openOptions{migrate: migrations.Up, registry: sqllock.RegistryOptions{Observers: ends}, repository: sqllock.RepositoryOptions{
			Observers: onFallbacks(func(reason error) { fallbacks = append(fallbacks, reason) }),
		}})
		second := o.opened(t, dsn, openOptions{
			registry: sqllock.RegistryOptions{Observers: ends, NoRenew: true}, repository: sqllock.RepositoryOptions{Isolation: sqllock.ReadCommitted},
		})
		lease := check.Value(first.Lock(t.Context(), "k"))(t)
		if lease.Token() == 0 {
			t.Error("no fencing token")
		}
		check.Is(t, check.ErrorOf(second.TryLock(t.Context(), "k")), sqllock.ErrNotAcquired)
		must(t, lease.Renew(t.Context()))
		rows := check.Value(second.Repository().List(t.Context()))(t)
		if len(rows) != 1 || rows[0].Holder != lease.Holder() {
			t.Errorf("rows %+v", rows)
		}
		must(t, lease.Unlock(t.Context()))
		if told := len(fallbacks) == 1; told != (db.Server == server.PgBouncer) || len(fallbacks) > 1 {
			t.Errorf("fallbacks: %v", fallbacks)
		}
		once(t, obtain(t, second, "k").TryLock)
		check.Same(t, "renewed by default, and with NoRenew", renewed, []bool{true, false})
	})
}

// Leases are renewed until they are unlocked, or until MaxHold; with NoRenew they are not.
func TestOpen_Renews(t *testing.T) {
	t.Parallel()
	check.Long(t)
	parse := func(dsn string) (session.Target, error) {
		target, err := sqlitedriver.Parse(dsn)
		target.Connector = func(source string, _ session.Settings) (driver.Connector, error) {
			return flaky.New(virtualsqlite.Driver{}, source), nil
		}
		target.Watcher = nil // what the system reports of a file is not of the bubble, whose time would stand still
		return target, err
	}
	const wait = 10 * ttl
	for name, c := range map[string]struct {
		options session.Options
		ends    time.Duration // the row, for another process that waits
		lost    error
	}{
		"Default": {session.Options{}, wait, nil},
		"NoRenew": {session.Options{Registry: sqllock.RegistryOptions{NoRenew: true}}, ttl, sqllock.ErrLockLost},
		"MaxHold": {session.Options{Registry: sqllock.RegistryOptions{MaxHold: 2 * ttl}}, 2*ttl + ttl/3, sqllock.ErrLockLost}, // it was renewed after 4/3 ttl,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := opener{open: func(ctx context.Context, dsn string, _ openOptions) (*sqllock.Registry, error) {
					c.options.Migrate, c.options.Registry.TTL, c.options.Registry.IdleBetweenTries = migrations.Up, ttl, 4*time.Second
					return session.Open(ctx, dsn, parse, c.options)
				}}
				path := filepath.Join(t.TempDir(), "locks.db")
				lease := check.Value(o.opened(t, path, openOptions{}).Lock(t.Context(), "k"))(t)
				began := time.Now()
				_, err := o.opened(t, path, openOptions{}).TryLockFor(t.Context(), "k", wait)
				if took := time.Since(began); took < c.ends || took > c.ends+time.Second || (err == nil) != (c.ends < wait) {
					t.Errorf("%v after %v", err, took)
				}
				is(t, lease.Unlock(t.Context()), c.lost)
			})
		})
	}
}

// Both halves of the wake-ups: a waiter that never polls goes on.
func TestOpen_Wake(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pgxlock", "pqlock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, o := dbtest.Postgres(t), byName(t, name)
			options := openOptions{migrate: migrations.Up, wake: true, registry: sqllock.RegistryOptions{TTL: never, IdleBetweenTries: never}}
			holder := o.opened(t, db.DSN, options)
			waiter := o.opened(t, db.With(t, map[string]string{"application_name": "waiter of " + name}), options)
			lease := check.Value(holder.Lock(t.Context(), "k"))(t)
			got := make(chan error, 1)
			go func() {
				lease, err := waiter.Lock(t.Context(), "k")
				if err == nil {
					err = lease.Unlock(t.Context())
				}
				got <- err
			}()
			awaitPoll(t, db.DB, "waiter of "+name)
			must(t, lease.Unlock(t.Context()))
			must(t, <-got)
		})
	}
}

// What a pooler cannot do is bad input, of whichever kind: the DSN is to be another one.
func TestOpen_WakeThroughAPooler(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pgxlock, PgBouncer", "pqlock, PgBouncer"} {
		o := byName(t, name)
		err := check.ErrorOf(o.open(t.Context(), up(t, o.database).DSN, openOptions{wake: true}))
		if !errors.Is(err, sqllock.ErrInvalid) || !errors.Is(err, notify.ErrPooled) || errors.Is(err, sqllock.ErrDatabase) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// awaitPoll waits until a waiter, whose sessions have a name, has read the row that it waits for.
func awaitPoll(t *testing.T, db *sqlx.DB, name string) {
	t.Helper()
	for n := 0; n == 0; {
		must(t, t.Context().Err())
		must(t, db.GetContext(t.Context(), &n,
			"SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'SELECT COALESCE%'", name))
	}
}

// A bad DSN is bad input, at once. No error repeats a password.
func TestOpen_BadDSN(t *testing.T) {
	t.Parallel()
	const secret = "S3cR3t"
	for name, dsns := range map[string][]string{
		"pgxlock": {
			"", "nonsense", "postgres://u:" + secret + "@h:port/db", "postgres://u:" + secret + "/@h/db",
			"host=h port=x password=" + secret, "mysql://u:" + secret + "@h/db", "postgres://h/db?sslmode=" + secret + "&password=" + secret,
		},
		"pqlock": {
			"", "nonsense", "postgres://u:" + secret + "@h:port/db", "postgres://u:" + secret + "/@h/db",
			"host=h port=x password=" + secret, "mysql://u:" + secret + "@h/db", "postgres://h/db\n",
		},
		"mysqllock": {
			"", "nonsense", "u:" + secret + "@tcp(h", "mysql://u:" + secret + "@h", "mysql://u:" + secret + "/@h/db",
			"postgres://u:" + secret + "@h/db", "mysql://u:" + secret + "@h/db?timeout=3",
		},
		"sqlitelock": {
			"", "sqlite:", ":memory:", "file:x?mode=memory", "postgres://u:" + secret + "@h/db", "locks.db?_key=" + secret, "a\x00",
			"file:%3Amemory%3A", "file:/x?vfs=memdb", "file:x?mode=rw&mode=memory", "file:#x", "file://", "file://localhost", "file:%00x",
			"file:x#?mode=rw", "file:x?nolock=1", "file:x?vfs=unix-none",
		},
	} {
		o := byName(t, name)
		for _, dsn := range dsns {
			_, err := o.open(t.Context(), dsn, openOptions{})
			if !errors.Is(err, sqllock.ErrInvalid) || strings.Contains(err.Error(), secret) {
				t.Errorf("%s %q: %v", name, dsn, err)
			}
		}
	}
}

// A certificate that is missing is named, in both forms of a DSN and by the environment, without the password.
// (lib/pq opens it when a server has answered, and names it then.)
func TestOpen_MissingFile(t *testing.T) {
	const secret = "S3cR3t"
	test := func(dsn string) {
		t.Helper()
		_, err := openPgx(t.Context(), dsn, openOptions{})
		if !errors.Is(err, sqllock.ErrInvalid) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/nope.pem") || strings.Contains(err.Error(), secret) {
			t.Error(err)
		}
	}
	test("postgres://u:" + secret + "@127.0.0.1:1/db?sslmode=verify-full&sslrootcert=/nope.pem")
	test("host=127.0.0.1 port=1 user=u password=" + secret + " dbname=db sslmode=verify-full sslrootcert=/nope.pem")
	t.Setenv("PGSSLROOTCERT", "/nope.pem")
	test("postgres://u:" + secret + "@127.0.0.1:1/db?sslmode=verify-full")
}

// What Open chooses by itself is not overwritten in silence.
func TestOpen_RefusesWhatItChooses(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	for name, options := range map[string]openOptions{
		"Acquirers":       {repository: sqllock.RepositoryOptions{Acquirers: db.DB.DB}},
		"MultiStatements": {repository: sqllock.RepositoryOptions{MultiStatements: true}},
		"Waker":           {wake: true, registry: sqllock.RegistryOptions{Waker: silentWaker{}}},
	} {
		if _, err := openPgx(t.Context(), "postgres://u@127.0.0.1:1/db", options); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// silentWaker never wakes a waiter.
type silentWaker struct{}

func (silentWaker) Watch(string) (wake <-chan struct{}, stop func()) { return nil, func() {} }

// The password is wrong, or nothing listens: the error names the database, not the password.
func TestOpen_KeepsThePasswordSecret(t *testing.T) {
	t.Parallel()
	const secret = "S3cR3t"
	listener := check.Value(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	unused := listener.Addr().String()
	must(t, listener.Close())
	for _, o := range onServers(t) {
		dsn := "postgres://app:" + secret + "@" + unused + "/db?sslmode=disable"
		if o.name == "mysqllock" {
			dsn = "app:" + secret + "@tcp(" + unused + ")/db"
		}
		_, err := o.open(t.Context(), dsn, openOptions{})
		if !errors.Is(err, sqllock.ErrDatabase) || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "app@"+unused+"/db") {
			t.Errorf("%s: %v", o.name, err)
		}
	}
}

// Without Migrate a missing table is an error that says how to create it, and so is a version that Migrate does not
// know. Nothing is left open.
func TestOpen_WithoutATable(t *testing.T) {
	t.Parallel()
	eachOpener(t, func(t *testing.T, o opener, db *dbtest.DB) {
		t.Helper()
		if o.name == "sqlitelock" {
			return // it creates the table
		}
		if _, err := o.open(t.Context(), db.DSN, openOptions{}); !errors.Is(err, sqllock.ErrSchema) || !strings.Contains(err.Error(), "migrate up") || !strings.Contains(err.Error(), "set Migrate: migrations.Up") {
			t.Errorf("error %v", err)
		}
		db.DB.MustExec("CREATE TABLE INT_LOCK_MIGRATIONS (version BIGINT, dirty BOOLEAN)")
		db.DB.MustExec("INSERT INTO INT_LOCK_MIGRATIONS VALUES (99, FALSE)")
		check.Is(t, check.ErrorOf(o.open(t.Context(), db.DSN, openOptions{migrate: migrations.Up})), sqllock.ErrSchema)
	})
}

// In a table of Spring 4.3 to 6 a Spring that uses it goes on working: without Migrate the error says how to keep its
// columns, and Migrate keeps them unless the options name the other layout.
func TestOpen_BesideSpring6(t *testing.T) {
	t.Parallel()
	const insert = "INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE) VALUES ('DEFAULT', 'k', 'java', CURRENT_TIMESTAMP)"
	eachOpener(t, func(t *testing.T, o opener, db *dbtest.DB) {
		t.Helper()
		must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 1, nil)) // Spring's own
		db.DB.MustExec("DROP TABLE INT_LOCK_MIGRATIONS")
		if o.name != "sqlitelock" { // it migrates
			_, err := o.open(t.Context(), db.DSN, openOptions{})
			if !errors.Is(err, sqllock.ErrSchema) || !strings.Contains(err.Error(), "`sqllock migrate up --layout spring6`") {
				t.Errorf("error %v", err)
			}
		}
		r := o.opened(t, db.DSN, openOptions{migrate: migrations.Up})
		must(t, r.Close(t.Context()))
		db.DB.MustExec(insert)
		db.DB.MustExec("DELETE FROM INT_LOCK")
		r = o.opened(t, db.DSN, openOptions{migrate: migrations.Up, repository: sqllock.RepositoryOptions{Layout: dialect.Spring7}})
		must(t, r.Close(t.Context()))
		if _, err := db.DB.ExecContext(t.Context(), insert); err == nil {
			t.Error("the layout that the options name was not made")
		}
	})
}

// An Open that fails after it has connected leaves no session on the server.
func TestOpen_FailureLeavesNoSession(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pgxlock", "pqlock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := byName(t, name)
			db := o.database(t)
			session := "leftover of " + name
			dsn := db.With(t, map[string]string{"application_name": session})
			for _, wake := range []bool{false, true} {
				check.Is(t, check.ErrorOf(o.open(t.Context(), dsn, openOptions{wake: wake})), sqllock.ErrSchema)
				awaitThat(t, "no session is left", func() bool {
					var n int
					must(t, db.DB.GetContext(t.Context(), &n, "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = $1", session))
					return n == 0
				})
			}
		})
	}
}

// Bad options are found before anything is opened, created or migrated, and OnClose is not called.
func TestOpen_ChecksItsOptionsFirst(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks.db")
	onClose := func() error { t.Error("OnClose was called"); return nil }
	for _, options := range []openOptions{
		// real time: is refused
		{registry: sqllock.RegistryOptions{TTL: 1}},
		{registry: sqllock.RegistryOptions{CacheCapacity: -1}},
		{repository: sqllock.RepositoryOptions{Prefix: "a b;"}},
		{repository: sqllock.RepositoryOptions{ClientID: "?"}},
	} {
		options.registry.OnClose = onClose
		if _, err := openSQLite(t.Context(), path, options); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%+v: error %v", options.repository, err)
		}
	}
	check.Is(t, check.ErrorOf(os.Stat(path)), fs.ErrNotExist)
}

// A Close whose context has ended leaves the pool open, so that another one can release. That one closes the pool,
// whose connections would otherwise stay, and calls the option once.
func TestOpen_CloseAgainAfterAnEndedContext(t *testing.T) {
	t.Parallel()
	eachOpener(t, func(t *testing.T, o opener, db *dbtest.DB) {
		t.Helper()
		closed := 0
		r, err := o.open(unhurried(t), db.DSN, openOptions{migrate: migrations.Up, registry: sqllock.RegistryOptions{
			TTL: time.Hour, OnClose: func() error { closed++; return nil },
		}})
		must(t, err)
		other := o.opened(t, db.DSN, openOptions{})
		must(t, check.ErrorOf(r.Lock(t.Context(), "k")))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Close(ended); err == nil || closed != 0 {
			t.Errorf("error %v, OnClose was called %d times", err, closed)
		}
		for range 2 {
			must(t, r.Close(t.Context()))
		}
		if _, err := r.Repository().List(t.Context()); !errors.Is(err, sqllock.ErrDatabase) || closed != 1 {
			t.Errorf("after Close: %v; OnClose was called %d times", err, closed)
		}
		once(t, obtain(t, other, "k").TryLock)
	})
}

// The drivers send one text for a key, whatever the encoding of the database and of the DSN.
func TestOpen_DatabaseThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	dsn := latin1Database(t).DSN
	options := openOptions{migrate: migrations.Up, repository: sqllock.RepositoryOptions{Keys: sqllock.PlainKeys, Region: "größe"}}
	must(t, check.ErrorOf(byName(t, "pqlock").opened(t, dsn, options).TryLock(t.Context(), "café")))
	for _, of := range []string{"", "&client_encoding=latin1"} {
		if _, err := byName(t, "pgxlock").opened(t, dsn+of, options).TryLock(t.Context(), "café"); !errors.Is(err, sqllock.ErrNotAcquired) {
			t.Errorf("DSN with %q: %v", of, err)
		}
	}
}
