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

// A cell is a database, the JDBC driver of Java, and the generation of Spring that shares its lock table.
type cell struct {
	place      string
	db         *dbtest.DB
	driver     javaclient.Driver
	generation javaclient.Generation
	layout     dialect.Layout
}

// A place is a database and the JDBC driver that Java uses there.
type place struct {
	name   string
	make   func(testing.TB) *dbtest.DB
	driver javaclient.Driver
}

var (
	postgres = place{"postgres", dbtest.Postgres, ""}
	mariadb  = place{"mariadb", dbtest.MySQL, javaclient.MariaDB}
	// From 11.6.2 on, a statement that has waited for a row fails (innodb_snapshot_isolation): Spring's, too.
	mariadbNewest = place{"mariadb-newest", dbtest.MariaDBNewest, javaclient.MariaDB}
	// MySQL's driver takes a MariaDB that greets its clients as 5.5.5 for a server without fractions of seconds.
	connectorJ = place{"mariadb-connectorj", dbtest.MySQL, javaclient.ConnectorJ}
	mysqlPlace = place{"mysql", dbtest.OracleMySQL, javaclient.ConnectorJ}
)

// A choice is a place and the generations that are tried there.
type choice struct {
	place
	generations []javaclient.Generation
}

// usual are the cells of most tests: each layout on each kind of database, and each version.
var usual = []choice{
	{postgres, []javaclient.Generation{javaclient.Spring6, javaclient.Spring7}},
	{mariadb, []javaclient.Generation{javaclient.Spring6, javaclient.Spring70}},
	{mariadbNewest, []javaclient.Generation{javaclient.Spring7}},
}

// ofMySQL are the cells of MySQL's driver.
var ofMySQL = []choice{
	{connectorJ, []javaclient.Generation{javaclient.Spring6, javaclient.Spring7}},
	{mysqlPlace, []javaclient.Generation{javaclient.Spring6, javaclient.Spring7}},
}

// versions are the cells of tests about Spring's own memory, which is the same on every database.
var versions = []choice{{postgres, []javaclient.Generation{javaclient.Spring6, javaclient.Spring70, javaclient.Spring7}}}

// contended are the cells of the test that takes longest: each version, server and driver.
var contended = []choice{
	{postgres, []javaclient.Generation{javaclient.Spring6, javaclient.Spring7}},
	{mariadb, []javaclient.Generation{javaclient.Spring70}},
	{mariadbNewest, []javaclient.Generation{javaclient.Spring7}},
	{mysqlPlace, []javaclient.Generation{javaclient.Spring7}},
}

// drivers are the cells of tests that depend on how the driver writes and reads rows.
var drivers = append(ofMySQL, usual...)

// eachCell runs a test in the cells of choices, each with an empty database.
func eachCell(t *testing.T, choices []choice, test func(t *testing.T, c *cell)) {
	t.Helper()
	for _, at := range choices {
		for _, generation := range at.generations {
			t.Run(at.name+"/"+string(generation), func(t *testing.T) {
				t.Parallel()
				program(t, generation)
				layout := dialect.Spring7
				if generation == javaclient.Spring6 {
					layout = dialect.Spring6
				}
				test(t, &cell{place: at.name, db: at.make(t), driver: at.driver, generation: generation, layout: layout})
			})
		}
	}
}

// eachMigrated is eachCell in the usual cells, with a lock table of package migrations.
func eachMigrated(t *testing.T, test func(t *testing.T, c *cell)) {
	t.Helper()
	migrated(t, usual, test)
}

// migrated is eachCell with a lock table of package migrations.
func migrated(t *testing.T, choices []choice, test func(t *testing.T, c *cell)) {
	t.Helper()
	eachCell(t, choices, func(t *testing.T, c *cell) {
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
	settings.DSN, settings.Driver = c.db.DSN, c.driver
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
	r := check.Value(sqllock.NewRegistry(c.repository(t, ttl), &sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: idle, NoRenew: true}))(t)
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
