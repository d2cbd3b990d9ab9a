package servers_test

import (
	"cmp"
	"context"
	"net/url"
	"runtime/debug"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/migrations"
)

var must, is = check.Must, check.Is

var (
	obtain, obtainAll = fixture.Obtain, fixture.Obtain
	onRenewals        = fixture.OnRenewals
	onFallbacks       = fixture.OnFallbacks
	limited           = fixture.Limited
)

// ttl is long enough never to end within a test.
const ttl = time.Minute

type lockFunc func(context.Context) (*sqllock.Lease, error)

// once locks and unlocks.
func once(t *testing.T, lock lockFunc) {
	t.Helper()
	must(t, check.Value(lock(t.Context()))(t).Unlock(t.Context()))
}

// newRegistry returns a registry that is closed with the test. Its leases last for ttl, unless opts have another.
func newRegistry(t *testing.T, r *sqllock.Repository, opts *sqllock.RegistryOptions) *sqllock.Registry {
	t.Helper()
	own := sqllock.RegistryOptions{}
	if opts != nil {
		own = *opts
	}
	own.TTL = cmp.Or(own.TTL, ttl)
	return fixture.NewRegistry(t, r, &own)
}

// migrated returns an SQLite database with a lock table. In a bubble its time is the bubble's.
func migrated(t *testing.T) *dbtest.DB {
	t.Helper()
	return virtual.Migrated(t, dialect.Spring7)
}

// latin1Database is a database of PostgreSQL whose text is not UTF-8.
func latin1Database(tb testing.TB) *dbtest.DB {
	tb.Helper()
	return apart(tb, dbtest.Postgres(tb), "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' ")
}

// apart returns a database of its own, with those options, on a server of PostgreSQL, where all others are schemas
// of one: CREATE INDEX CONCURRENTLY, and REINDEX, wait for the sessions of their database.
func apart(tb testing.TB, server *dbtest.DB, options string) *dbtest.DB {
	tb.Helper()
	u := check.Value(url.Parse(server.DSN))(tb)
	db := *server
	name := u.Query().Get("search_path") + "_apart"
	server.DB.MustExecContext(tb.Context(), "CREATE DATABASE "+name+" "+options+"TEMPLATE template0")
	tb.Cleanup(func() { server.DB.MustExec("DROP DATABASE " + name + " WITH (FORCE)") })
	u.Path = "/" + name
	values := u.Query()
	values.Del("search_path")
	u.RawQuery = values.Encode()
	db.DSN = u.String()
	db.DB = db.Open(tb)
	return &db
}

// alone returns what opens a database of its own, where no test waits for another's transactions.
func alone(open func(testing.TB) *dbtest.DB) func(testing.TB) *dbtest.DB {
	return func(tb testing.TB) *dbtest.DB {
		tb.Helper()
		return apart(tb, open(tb), "")
	}
}

// never is a pause that outlasts every test: a waiter that goes on was woken up.
const never = time.Hour

// databases are those on which a test runs.
type databases dbtest.Databases

var mysqls = databases{"MariaDB": dbtest.MySQL, "MySQL": dbtest.OracleMySQL}

// each runs a test on each of the databases, at once.
func (all databases) each(t *testing.T, test func(*testing.T, *dbtest.DB)) {
	t.Helper()
	dbtest.Databases(all).Each(t, test)
}

// migrated is each with the tables of locks.
func (all databases) migrated(t *testing.T, test func(*testing.T, *dbtest.DB)) {
	t.Helper()
	all.each(t, func(t *testing.T, db *dbtest.DB) {
		t.Helper()
		must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
		test(t, db)
	})
}

// up returns a database with the tables of locks.
func up(t *testing.T, open func(testing.TB) *dbtest.DB) *dbtest.DB {
	t.Helper()
	db := open(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	return db
}

// repository returns a repository over the pool of a database.
func repository(t *testing.T, db *dbtest.DB, opts *sqllock.RepositoryOptions) *sqllock.Repository {
	t.Helper()
	return check.Value(sqllock.NewRepository(unhurried(t), db.DB.DB, db.Dialect, opts))(t)
}

// unhurried is the test's context as [dbtest.Unhurried] makes it.
func unhurried(t *testing.T) context.Context {
	t.Helper()
	return dbtest.Unhurried(t.Context())
}

// TestMain checks that no test leaves a goroutine behind. That in which pgx closes a connection after a cancelled
// statement may still run: Pgpool-II takes two seconds to cancel it, and pgx gives it fifteen.
func TestMain(m *testing.M) {
	sqltext.LeastTTLOfTiDB = 0 // no other server is waited for
	debug.SetGCPercent(400)    // saves a sixth of the time
	testmain.Run(m, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn.(*PgConn).asyncClose.func1"))
}
