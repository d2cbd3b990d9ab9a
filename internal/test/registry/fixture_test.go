package registry_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	shared "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/sync/semaphore"
)

var must, is = check.Must, check.Is

var (
	obtain, obtainAll = shared.Obtain, shared.Obtain
	onRenewals        = shared.OnRenewals
)

// newRegistry returns a registry that writes no names: most tests here count statements, or stop some. For names
// there is shared.NewRegistry.
func newRegistry(t *testing.T, r *sqllock.Repository, opts *sqllock.RegistryOptions) *sqllock.Registry {
	t.Helper()
	var o sqllock.RegistryOptions
	if opts != nil {
		o = *opts
	}
	o.DisableNames = true
	return shared.NewRegistry(t, r, &o)
}

// newPlainFixture is a fixture in which to acquire is one statement, and begins no transaction that would keep all
// other writers of SQLite waiting.
func newPlainFixture(t *testing.T, opts sqllock.RepositoryOptions) *fixture {
	t.Helper()
	s := newFixture(t, sqllock.Autocommit)
	opts.Isolation, opts.DisableFencing = sqllock.Autocommit, true
	s.repository = newRepository(t, s.pool, &opts)
	s.registry = newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true})
	s.lock = obtain(t, s.registry, "k")
	return s
}

// delay has each operation on the database take as long as latency.
func (s *fixture) delay(latency time.Duration) {
	s.connector.Follow(func(ctx context.Context, moment flaky.Moment) error {
		if !moment.Done {
			bounded.Sleep(ctx, latency)
		}
		return ctx.Err()
	})
}

// errGone is what the driver says when the database has gone.
var errGone = errors.New("connection reset by peer")

var errStop = errors.New("stop")

// A fixture is a registry over a database that fails on demand.
type fixture struct {
	*testing.T
	db         *dbtest.DB // the same database, always well
	connector  *flaky.Connector
	pool       *sqlx.DB // of the database that fails
	repository *sqllock.Repository
	registry   *sqllock.Registry
	lock       *sqllock.JdbcLock
	three      *semaphore.Semaphore
	whole      method        // what acquires all of a lock of several rows, if the test is about one
	ttl        time.Duration // of the leases, unless it is 0
}

func newFixture(t *testing.T, isolation sqllock.Isolation) *fixture {
	t.Helper()
	db := migrated(t)
	connector := flaky.New(db.DB.Driver(), db.DSN)
	pool := sqlx.NewDb(sql.OpenDB(connector), "sqlite")
	t.Cleanup(func() { must(t, pool.Close()) })
	s := &fixture{T: t, db: db, connector: connector, pool: pool}
	return s.another(isolation)
}

// another returns the fixture with another process.
func (s *fixture) another(isolation sqllock.Isolation) *fixture {
	s.Helper()
	another := *s
	another.repository = newRepository(s.T, s.pool, &sqllock.RepositoryOptions{Isolation: isolation})
	another.registry = newRegistry(s.T, another.repository, &sqllock.RegistryOptions{TTL: cmp.Or(s.ttl, ttl), IdleBetweenTries: 100 * time.Millisecond, NoRenew: true})
	another.lock = obtain(s.T, another.registry, "k")
	return &another
}

func held(s *fixture) *sqllock.Lease {
	s.Helper()
	return check.Value(s.lock.TryLock(s.Context()))(s.T)
}

// ttl is long enough never to end within a test.
const ttl = time.Minute

// migrated returns an SQLite database with a lock table. In a bubble its time is the bubble's.
func migrated(t *testing.T) *dbtest.DB {
	t.Helper()
	return virtual.Migrated(t, dialect.Spring7)
}

// newRepository returns a repository of its own client over an SQLite pool.
func newRepository(t *testing.T, db *sqlx.DB, opts *sqllock.RepositoryOptions) *sqllock.Repository {
	t.Helper()
	return check.Value(sqllock.NewRepository(t.Context(), db.DB, dialect.SQLite(), opts))(t)
}

// lateTTL is waited for; what is late comes after it.
const lateTTL = 2 * time.Second

// A delay holds the first operation of a kind back until it is let go, and then has it done although its caller has
// left: a packet that was long under way.
type delay struct {
	reached, let chan struct{}
	once         atomic.Bool
}

func holdBack(s *fixture, op flaky.Op) *delay {
	d := &delay{reached: make(chan struct{}), let: make(chan struct{})}
	s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
		if m.Op == op && !m.Done && d.once.CompareAndSwap(false, true) {
			close(d.reached)
			<-d.let
		}
		return nil
	})
	return d
}

// lateFixture is a fixture whose leases are short, with a rival in another process on the same table.
func lateFixture(t *testing.T, isolation sqllock.Isolation) (s *fixture, rival *sqllock.JdbcLock) {
	t.Helper()
	s = newFixture(t, isolation)
	s.lock = obtain(t, newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: lateTTL, IdleBetweenTries: 20 * time.Millisecond, NoRenew: true}), "k")
	other := newRepository(t, s.db.DB, nil)
	return s, obtain(t, newRegistry(t, other, &sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: 20 * time.Millisecond, NoRenew: true}), "k")
}

// silence is longer than all that a call may wait for: a time-to-live, and the patience of the table.
const silence = 5 * ttl

// stopAnswering has the server answer nothing from now on, behind a driver that does not look at its context, as
// lib/pq does not while it reads. After silence the connections break.
func stopAnswering(s *fixture) {
	begin := time.Now()
	s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
		if !m.Done {
			time.Sleep(time.Until(begin.Add(silence)))
			return errGone
		}
		return nil
	})
}

// waitUntilCallsFail waits for the calls that were left behind.
func waitUntilCallsFail(s *fixture) {
	time.Sleep(2 * silence)
	s.connector.Follow(nil)
}

// slack is how much longer than its context a call may take.
const slack = 200 * time.Millisecond

// busy is what SQLite's driver says when another process writes.
type busy struct{}

func (busy) Error() string { return "database is locked (5) (SQLITE_BUSY)" }

func (busy) Code() int { return 5 }

// nothing is what a test does under a lock that it is about.
func nothing(context.Context) error { return nil }

// blackHole has every operation hang until its context ends.
func blackHole(s *fixture) {
	s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
		if !m.Done {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
}

// renewalTTL is a time-to-live of which a third is a round number. The tests run in bubbles whose clock costs
// nothing, and which is the database's, too.
const renewalTTL = 5 * time.Minute

// inBubble runs a test on a clock of its own.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// The bubble's clock stops when the test ends, before the statements that were left behind have timed out.
		t.Cleanup(func() { time.Sleep(time.Minute) })
		test(t)
	})
}

// never is a pause that outlasts every test: a waiter that goes on was woken up.
const never = time.Hour

// runInBubble is t.Run of a test on a clock of its own.
func runInBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Helper()
		inBubble(t, test)
	})
}

// try returns the lease of a single try, which must succeed.
func try(t *testing.T, l *sqllock.JdbcLock) *sqllock.Lease {
	t.Helper()
	return check.Value(l.TryLock(t.Context()))(t)
}

// locked returns the lease of a wait, which must succeed.
func locked(t *testing.T, l *sqllock.JdbcLock) *sqllock.Lease {
	t.Helper()
	return check.Value(l.Lock(t.Context()))(t)
}

// tryKey is try of a key.
func tryKey(t *testing.T, r *sqllock.Registry, key string) *sqllock.Lease {
	t.Helper()
	return try(t, obtain(t, r, key))
}

// TestMain checks that no test leaves a goroutine behind.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // saves a sixth of the time
	testmain.Run(m)
}
