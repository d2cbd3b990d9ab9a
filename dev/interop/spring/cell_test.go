//go:build interop

package spring_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

var must = check.Must

const (
	// key is the key for which all processes contend.
	key = "orders/42"
	// long is a time-to-live that never ends within a test.
	long = 2 * time.Minute
	// waitLimit is how long a test waits for an expected event: for what hangs.
	waitLimit = 5 * time.Minute
	// idle is the polling interval in tests that do not check fairness.
	idle = 10 * time.Millisecond
)

// short is a time-to-live whose end tests wait for, and within which they make calls.
var short = scaled(4 * time.Second)

// A cell is a database and the generation of Spring that shares its lock table.
type cell struct {
	db         *dbtest.DB
	generation javaclient.Generation
	layout     dialect.Layout
}

// eachCell runs a test for both generations on both databases, each with an empty database.
func eachCell(t *testing.T, test func(t *testing.T, c *cell)) {
	t.Helper()
	for _, database := range []struct {
		name string
		make func(testing.TB) *dbtest.DB
	}{{"postgres", dbtest.Postgres}, {"mysql", dbtest.MySQL}} {
		for generation, layout := range map[javaclient.Generation]dialect.Layout{
			javaclient.Spring6: dialect.Spring6,
			javaclient.Spring7: dialect.Spring7,
		} {
			t.Run(database.name+"/"+string(generation), func(t *testing.T) {
				t.Parallel()
				program(t, generation)
				test(t, &cell{db: database.make(t), generation: generation, layout: layout})
			})
		}
	}
}

// eachMigrated is eachCell with a lock table of package migrations.
func eachMigrated(t *testing.T, test func(t *testing.T, c *cell)) {
	t.Helper()
	eachCell(t, func(t *testing.T, c *cell) {
		c.migrate(t)
		test(t, c)
	})
}

func (c *cell) migrate(t *testing.T) {
	t.Helper()
	must(t, migrations.Up(t.Context(), c.db.DB.DB, c.db.Dialect, &migrations.Options{Layout: c.layout}))
}

// exec executes a statement of the application.
func (c *cell) exec(t *testing.T, statement string) {
	t.Helper()
	must(t, check.ErrorOf(c.db.DB.ExecContext(t.Context(), statement)))
}

// java returns a Java application for the test, in the JVM of all tests.
func (c *cell) java(t *testing.T, settings javaclient.Settings) *javaclient.Client {
	t.Helper()
	settings.Idle = idle
	return c.javaIn(t, shared(t, c.generation), settings)
}

func (c *cell) javaIn(t *testing.T, j *javaclient.JVM, settings javaclient.Settings) *javaclient.Client {
	t.Helper()
	settings.DSN = c.db.DSN
	client := check.Value(j.Open(t.Context(), settings))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitLimit)
		defer cancel()
		_ = client.Close(ctx) // otherwise the database cannot be dropped; a test may have killed it
	})
	return client
}

// repository returns a repository as another Go process has. In the four-column table, ttl is
// the time-to-live of all rows.
func (c *cell) repository(t *testing.T, ttl time.Duration) *sqllock.Repository {
	t.Helper()
	return check.Value(sqllock.NewRepository(dbtest.Unhurried(t.Context()), c.db.Open(t).DB, c.db.Dialect, &sqllock.RepositoryOptions{TTL: ttl}))(t)
}

// registry returns the registry of another Go process. It is closed when the test ends.
func (c *cell) registry(t *testing.T, ttl time.Duration) *sqllock.Registry {
	t.Helper()
	r := check.Value(sqllock.NewRegistry(c.repository(t, ttl), &sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: idle}))(t)
	t.Cleanup(func() { must(t, r.Close(context.WithoutCancel(t.Context()))) })
	return r
}

// lock returns the lock of key in a new registry.
func (c *cell) lock(t *testing.T, ttl time.Duration) *sqllock.JdbcLock {
	t.Helper()
	return check.Value(c.registry(t, ttl).Obtain(key))(t)
}

// row returns the row of key. In the four-column table, ttl is its time-to-live.
func (c *cell) row(t *testing.T, ttl time.Duration) sqllock.Row {
	t.Helper()
	row, ok, err := c.repository(t, ttl).Peek(t.Context(), key)
	must(t, err)
	if !ok {
		t.Fatal("there is no row")
	}
	return row
}

// patiently returns the test's context with a timeout.
func patiently(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	t.Cleanup(cancel)
	return ctx
}

// scaled returns a time-to-live that makes up for how busy the machine is now: as many times d as a computation
// takes longer than its processor time, five times at most.
func scaled(d time.Duration) time.Duration {
	const enough = 100 * time.Millisecond
	began, before := time.Now(), processorTime()
	for processorTime()-before < enough { //nolint:revive // it only takes time
	}
	slowness := min(max(float64(time.Since(began))/float64(enough), 1), 5)
	if slowness > 1.5 {
		fmt.Fprintf(os.Stderr, "the machine is %.1f times as slow as it could be: leases that must end last %.1f times as long\n", slowness, slowness)
	}
	return time.Duration(slowness * float64(d)).Truncate(time.Second)
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
