package contract

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/poll"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/observe"
)

// A Cell is one combination of database, driver, layout and options.
type Cell struct {
	// Dialect, Layout and Isolation define the combination, together with the driver of DB.
	Dialect   dialect.Dialect
	Layout    dialect.Layout
	Isolation sqllock.Isolation
	// If Plain is true, batching and hand-off are disabled, and locks are fair where they can be.
	Plain bool
	// DB has a migrated lock table of that layout. All tests share it; each test uses a region of its own.
	DB *sqlx.DB
	// Pgx, if not nil, is the pool that DB is over. Guarded transactions are then its own.
	Pgx *pgxpool.Pool
	// Acquirers and MultiStatements are those of the repositories' options.
	Acquirers       *sql.DB
	MultiStatements bool
	// NewTable, if not nil, creates a table of the application's for DB, which has no right to.
	NewTable func(tb testing.TB, name, columns string)
	// InBubble, if not nil, is called instead of using DB: each test runs in a bubble of testing/synctest, on a
	// database of its own in virtual time.
	InBubble func(testing.TB) *sqlx.DB
	// Waker, if not nil, wakes up waiters, and releases notify it.
	Waker sqllock.Waker
	// Watcher, if not nil, reports writes to waiters.
	Watcher poll.Watcher
	// Bell, if not nil, has releases wake waiters.
	Bell locktable.Bell
	// Only, if not nil, are the names of the tests that run, as in [Names], one after the other.
	Only []string
	// If OnlyOwn is true, tests are left out that show the same in every cell of a server, because they send no
	// statement of their own kind: another cell of the server runs them.
	OnlyOwn bool
}

// A Result is the number of tests of a cell that ran, and how many of them failed.
type Result struct{ Run, Failed int }

// Run runs the suite, and calls done when all of its tests have ended.
func Run(t *testing.T, cell Cell, done func(Result)) {
	t.Helper()
	var ran, failed atomic.Int64
	t.Cleanup(func() { done(Result{int(ran.Load()), int(failed.Load())}) })
	for _, part := range parts(cell) {
		t.Run(part.name, func(t *testing.T) {
			running := make(chan struct{}, cmp.Or(part.atOnce, len(part.tests)))
			for _, test := range part.tests {
				if !cell.has(test) || cell.Only != nil && !slices.Contains(cell.Only, part.name+"/"+test.name) {
					continue
				}
				t.Run(test.name, func(t *testing.T) {
					if !part.sequential && cell.Only == nil {
						t.Parallel()
					}
					running <- struct{}{}
					t.Cleanup(func() { // registered first, so it runs last
						<-running
						ran.Add(1)
						if t.Failed() {
							failed.Add(1)
						}
					})
					cell.run(t, test)
				})
			}
		})
	}
}

// isFair reports whether the locks of the cell are acquired in the order of arrival between processes.
func (c Cell) isFair() bool { return c.Plain && c.Dialect != dialect.SQLite() }

// has reports whether a test runs in the cell.
func (c Cell) has(test test) bool {
	switch test.extent {
	case virtualTime:
		return c.InBubble != nil
	case oncePerServer:
		return !c.OnlyOwn
	default:
		return true
	}
}

func (c Cell) run(t *testing.T, test test) {
	t.Helper()
	if c.InBubble == nil {
		test.run(newFixture(t, c))
		return
	}
	synctest.Test(t, func(t *testing.T) {
		// The bubble's clock stops when the test ends. If it has failed, there may be statements that have not timed
		// out yet.
		t.Cleanup(func() { time.Sleep(ttl) })
		c.DB = c.InBubble(t)
		test.run(newFixture(t, c))
	})
}

// A part is a group of tests. The parts run one after the other.
type part struct {
	name  string
	tests []test
	// If sequential is true, the tests of the part run one after the other. In an SQLite database one writer blocks
	// all others, and they are not served in order: while one test renewed two thousand rows, the leases of another
	// test could expire, and of many writers one could wait for longer than a batch may take.
	sequential bool
	// atOnce, if not 0, is how many tests of the part run at the same time at most: their transactions keep
	// connections, and without a connection nothing of the library gets its answer in time.
	atOnce int
}

// parts returns the tests of a cell. Renewals, guarded transactions and electors do not depend on the isolation in
// which a lock was acquired, and their tests take long: they run for one isolation only.
func parts(cell Cell) []part {
	shared := cell.Dialect == dialect.SQLite() && cell.InBubble == nil
	all := []part{
		{name: "Repository", tests: repositoryTests},
		{name: "Lease", tests: leaseTests},
		{name: "Waiting", tests: waitingTests},
		{name: "Transaction", tests: transactionTests},
		{name: "Contention", tests: contentionTests, sequential: shared},
		{name: "Names", tests: nameTests},
		{name: "Fencing", tests: fencingTests},
		{name: "Joint", tests: jointTests, sequential: shared},
		{name: "Semaphore", tests: semaphoreTests, sequential: shared},
		{name: "ReadWrite", tests: readWriteTests, sequential: shared},
	}
	if !cell.Plain {
		all = append(all,
			part{name: "Batching", tests: batchingTests, sequential: shared},
			part{name: "HandOff", tests: handOffTests})
	}
	if cell.Isolation == sqllock.Serializable {
		all = append(all,
			part{name: "Renewal", tests: slices.Concat(renewalTests, jointRenewalTests), sequential: shared},
			part{name: "Guard", tests: slices.Concat(guardTests, lockedTxTests, jointGuardTests, semaphoreGuardTests, readWriteGuardTests), sequential: shared, atOnce: 6},
			part{name: "Leader", tests: leaderTests, sequential: shared})
	}
	return all
}

// Names returns the names of all tests with the names of their parts, for example "Lease/ReentryByContext".
func Names() []string {
	var names []string
	for _, part := range parts(Cell{}) {
		for _, test := range part.tests {
			names = append(names, part.name+"/"+test.name)
		}
	}
	return names
}

// A test checks one promise.
type test struct {
	name   string
	run    func(*fixture)
	extent extent
}

// An extent says in which cells a test runs.
type extent int

const (
	everyCell     extent = iota
	oncePerServer        // see [Cell.OnlyOwn]
	virtualTime          // it is about the holder's clock, and a machine that is busy makes that one late
)

// inEachCell is a test that runs in every cell that has its part.
func inEachCell(name string, run func(*fixture)) test { return test{name, run, everyCell} }

// once is a test that shows the same in every cell of a server.
func once(name string, run func(*fixture)) test { return test{name, run, oncePerServer} }

// inVirtualTime is a test that runs in a bubble alone.
func inVirtualTime(name string, run func(*fixture)) test { return test{name, run, virtualTime} }

// A fixture is what one test works with: a region of the table of its own, in which it creates as many processes as
// it needs.
type fixture struct {
	testing.TB
	cell   Cell
	region string
}

var regions atomic.Int64

func newFixture(tb testing.TB, cell Cell) *fixture {
	tb.Helper()
	return &fixture{TB: tb, cell: cell, region: fmt.Sprintf("region %d", regions.Add(1))}
}

// ttl never ends within a test, however slow the machine is. A test that needs the end of a lease lets it pass: see
// [fixture.pass] and [fixture.age].
const ttl = 5 * time.Minute

// short is how long tests wait for what must not happen. If the machine is slow they notice less, and never fail for
// it. It is also the time-to-live of rows that no holder has to keep.
const short = 250 * time.Millisecond

// process returns a repository with a client id of its own, as another process has.
func (f *fixture) process() *sqllock.Repository {
	f.Helper()
	return f.processWith(ttl)
}

// processWith is process for locks of another time-to-live, which a repository over the four-column layout has to
// know.
func (f *fixture) processWith(ttl time.Duration) *sqllock.Repository {
	f.Helper()
	r := f.repository(sqllock.RepositoryOptions{
		TTL: ttl, DisableBatching: f.cell.Plain,
		Notify: f.cell.Waker != nil, Acquirers: f.cell.Acquirers, MultiStatements: f.cell.MultiStatements,
		Observers: []*observe.Observer{{Fallback: func(_ context.Context, e observe.Fallback) {
			f.Errorf("acquisitions take more round trips than they should: %v", e.Reason)
		}}},
	})
	if r.Layout() != f.cell.Layout {
		f.Fatalf("layout %v, want %v", r.Layout(), f.cell.Layout)
	}
	return r
}

// repository returns a repository of the cell, in the test's region unless the options have another.
func (f *fixture) repository(opts sqllock.RepositoryOptions) *sqllock.Repository {
	f.Helper()
	opts.Region, opts.Isolation = cmp.Or(opts.Region, f.region), f.cell.Isolation
	return check.Value(sqllock.NewRepository(f.unhurried(), f.cell.DB.DB, f.cell.Dialect, &opts))(f)
}

// unhurried is the test's context, with which a repository waits for a minute for each answer.
func (f *fixture) unhurried() context.Context {
	ctx := dbcall.WithTestPatience(f.Context(), time.Minute)
	if f.cell.Watcher != nil {
		ctx = poll.WithWatcher(ctx, f.cell.Watcher)
	}
	if f.cell.Bell != nil {
		ctx = locktable.WithBell(ctx, f.cell.Bell)
	}
	return ctx
}

// idle is the time between two tries of a waiter. It is short, to keep the tests short. In a bubble each try costs
// time, and waiting costs none.
func (c Cell) idle() time.Duration {
	if c.InBubble != nil {
		return 100 * time.Millisecond
	}
	return 20 * time.Millisecond
}

// registry returns the registry of another process.
func (f *fixture) registry(ttl time.Duration) *sqllock.Registry {
	f.Helper()
	return f.registryOver(f.processWith(ttl), sqllock.RegistryOptions{
		NoRenew: true, TTL: ttl, IdleBetweenTries: f.cell.idle(), HandOff: !f.cell.Plain, Fair: f.cell.isFair(), Waker: f.cell.Waker,
	})
}

// longWaiter is registry for a caller that waits for the end of a lease. In virtual time it polls seldom: ten thousand polls
// in five minutes would find what some hundred find.
func (f *fixture) longWaiter() *sqllock.Registry {
	f.Helper()
	idle := f.cell.idle()
	if f.cell.InBubble != nil {
		idle = 4 * time.Second
	}
	return f.registryOver(f.process(), sqllock.RegistryOptions{
		NoRenew: true, TTL: ttl, IdleBetweenTries: idle, HandOff: !f.cell.Plain, Fair: f.cell.isFair(), Waker: f.cell.Waker,
	})
}

// registryOver returns a registry that is closed at the end.
func (f *fixture) registryOver(repository *sqllock.Repository, opts sqllock.RegistryOptions) *sqllock.Registry {
	f.Helper()
	r := check.Value(sqllock.NewRegistry(repository, &opts))(f)
	f.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			f.Errorf("close: %v", err)
		}
	})
	return r
}

// lock returns the lock of "k" in another process.
func (f *fixture) lock(ttl time.Duration) *sqllock.JdbcLock {
	f.Helper()
	return f.obtain(f.registry(ttl))
}

func (f *fixture) obtain(r *sqllock.Registry) *sqllock.JdbcLock {
	f.Helper()
	return check.Value(r.Obtain("k"))(f)
}

// A tryLocker is a lock, or the writer's half of one.
type tryLocker interface {
	TryLock(ctx context.Context) (*sqllock.Lease, error)
}

// acquire acquires l without waiting, or fails the test.
func (f *fixture) acquire(l tryLocker) *sqllock.Lease {
	f.Helper()
	return check.Value(l.TryLock(f.Context()))(f)
}

func (f *fixture) must(err error) {
	f.Helper()
	check.Must(f, err)
}

// is checks that err wraps wanted, or is nil if wanted is nil.
func (f *fixture) is(err, wanted error) {
	f.Helper()
	if !errors.Is(err, wanted) {
		f.Fatalf("error %v, want %v", err, wanted)
	}
}

// equal checks a value.
func equal[V comparable](f *fixture, what string, got, want V) {
	f.Helper()
	if got != want {
		f.Fatalf("%s: %v, want %v", what, got, want)
	}
}
