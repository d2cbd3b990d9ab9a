// Package contract is the behaviour that sqllock promises, as a test suite. Every
// combination of database, driver, table layout and isolation must pass all of
// it: a difference between them that a user could notice is a bug.
//
// To run it for a new combination, write a [Cell] and call [Run].
package contract

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// A Cell is one combination that keeps the contract.
type Cell struct {
	// Dialect, Layout and Isolation are what the combination is made of, together
	// with the driver of DB.
	Dialect   dialect.Dialect
	Layout    dialect.Layout
	Isolation sqllock.Isolation
	// Plain says that group commit and hand-off are off.
	Plain bool
	// Prepare says that statements are prepared and kept.
	Prepare bool
	// DB has a migrated lock table of that layout. Tests share it: each has a
	// region of its own.
	DB *sqlx.DB
	// Waker, if any, wakes waiters; then releases notify.
	Waker sqllock.Waker
}

// A Result says how many tests of a cell ran, and of those how many failed.
type Result struct{ Run, Failed int }

// Run runs the suite, and calls done when all of its tests have ended.
func Run(t *testing.T, cell Cell, done func(Result)) {
	t.Helper()
	var ran, failed atomic.Int64
	t.Cleanup(func() { done(Result{int(ran.Load()), int(failed.Load())}) })
	for _, part := range parts(cell) {
		t.Run(part.name, func(t *testing.T) {
			for _, test := range part.tests {
				t.Run(test.name, func(t *testing.T) {
					if !part.alone {
						t.Parallel()
					}
					t.Cleanup(func() { // the first to be registered is the last to run
						ran.Add(1)
						if t.Failed() {
							failed.Add(1)
						}
					})
					test.run(newWorld(t, cell))
				})
			}
		})
	}
}

// A part is a group of tests; a part is begun when the one before has ended.
type part struct {
	name  string
	tests []test
	// alone has the tests run one after the other: where one writer keeps all others out,
	// the renewal of two thousand rows would cost a neighbour its lease.
	alone bool
}

// parts are what a cell is tested for. How a lock was acquired makes no difference to
// its renewal, nor to a guarded transaction: these take long, and are tested for one
// isolation alone.
func parts(cell Cell) []part {
	all := []part{
		{name: "Repository", tests: repositoryTests},
		{name: "Lease", tests: leaseTests},
		{name: "Waiting", tests: waitingTests},
		{name: "Transaction", tests: transactionTests},
		{name: "Contention", tests: contentionTests},
		{name: "Fencing", tests: fencingTests},
	}
	if !cell.Plain {
		all = append(all, part{name: "Together", tests: togetherTests}, part{name: "HandOff", tests: handOffTests})
	}
	if cell.Isolation == sqllock.Serializable {
		all = append(all,
			part{name: "Renewal", tests: renewalTests, alone: cell.Dialect.Embedded},
			part{name: "Guard", tests: guardTests, alone: cell.Dialect.Embedded})
	}
	return all
}

// Names returns the names of all tests, each behind that of its part: "Lease/ReentryByContext".
func Names() []string {
	var names []string
	for _, part := range parts(Cell{}) {
		for _, test := range part.tests {
			names = append(names, part.name+"/"+test.name)
		}
	}
	return names
}

// A test is one promise.
type test struct {
	name string
	run  func(*world)
}

// A world is what one test plays in: a region of the table, and as many
// processes as it wants to make.
type world struct {
	*testing.T
	cell   Cell
	region string
}

var regions atomic.Int64

func newWorld(t *testing.T, cell Cell) *world {
	return &world{t, cell, fmt.Sprintf("region %d", regions.Add(1))}
}

// ttl is long enough never to end within a test, unless the database hangs.
const ttl = time.Minute

// The times-to-live whose ends tests wait for. A lease takes longer to get than to
// last where a busy machine answers late: short is for rows only, brief for leases,
// moderate for leases that somebody has to keep meanwhile.
const (
	short    = 250 * time.Millisecond
	brief    = 4 * short
	moderate = 4 * time.Second
)

// process returns what another process would have: a repository with a client
// id of its own.
func (w *world) process() *sqllock.Repository {
	w.Helper()
	r, err := sqllock.NewRepository(w.cell.DB, w.cell.Dialect, &sqllock.RepositoryOptions{
		Region: w.region, Isolation: w.cell.Isolation, WithoutGroupCommit: w.cell.Plain, Prepare: w.cell.Prepare,
		Notify: w.cell.Waker != nil,
	})
	w.must(err)
	if r.Layout() != w.cell.Layout {
		w.Fatalf("layout %v, want %v", r.Layout(), w.cell.Layout)
	}
	return r
}

// registry returns the registry of another process. It polls often, so that
// tests are short.
func (w *world) registry(ttl time.Duration) *sqllock.Registry {
	w.Helper()
	r, err := sqllock.NewRegistry(w.process(), &sqllock.RegistryOptions{
		TTL: ttl, IdleBetweenTries: 20 * time.Millisecond, HandOff: !w.cell.Plain, Waker: w.cell.Waker,
	})
	w.must(err)
	w.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			w.Errorf("close: %v", err)
		}
	})
	return r
}

// lock returns the lock of "k" in yet another process.
func (w *world) lock(ttl time.Duration) *sqllock.JdbcLock {
	w.Helper()
	return w.obtain(w.registry(ttl))
}

func (w *world) obtain(r *sqllock.Registry) *sqllock.JdbcLock {
	w.Helper()
	l, err := r.Obtain("k")
	w.must(err)
	return l
}

// acquire locks l at once or fails the test.
func (w *world) acquire(l *sqllock.JdbcLock) *sqllock.Lease {
	w.Helper()
	lease, err := l.TryLock(w.Context())
	w.must(err)
	return lease
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// is checks that err is wanted, or nil where nil is wanted.
func (w *world) is(err, wanted error) {
	w.Helper()
	if !is(err, wanted) {
		w.Fatalf("error %v, want %v", err, wanted)
	}
}

// same checks a value.
func same[V comparable](w *world, what string, got, want V) {
	w.Helper()
	if got != want {
		w.Fatalf("%s: %v, want %v", what, got, want)
	}
}
