package servers_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/notify"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/mysqldriver"
	"github.com/sqllock/sqllock/internal/session/pgxdriver"
	"github.com/sqllock/sqllock/internal/session/pqdriver"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/contract"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/migrations"
)

// A column of the matrix is a server, reached through a driver with settings. Both layouts and all isolations are
// tested in each.
type column struct {
	server string
	open   func(testing.TB) *dbtest.DB
	driver string
	// settings are parameters of the DSN, under a name for people.
	settings   string
	parameters map[string]string
	// plain is without batching and hand-off, and notify has releases wake waiters; both with the default isolation
	// alone.
	plain, notify bool
	// pgxpool has a pool of pgx, the registries on a *sql.DB over it, and guarded transactions of pgx; with the
	// default isolation alone.
	pgxpool bool
	// parse, unless it is nil, gives the pools of pgxlock.Open and the like, for a user with few rights; with the
	// default isolation alone.
	parse func(dsn string) (session.Target, error)
	// wake has releases of these wake waiters.
	wake bool
	// table has MariaDB draw fencing tokens from a table, as on Galera.
	table bool
}

var matrix = []column{
	{server: server.SQLite, open: dbtest.SQLite, driver: "sqlite"},
	{server: server.Postgres, open: dbtest.Postgres, driver: "postgres"},
	{server: server.Postgres, open: dbtest.Postgres, driver: "pgx"},
	{server: server.SQLite, open: dbtest.SQLite, driver: "sqlite", settings: "plain", plain: true},
	{server: server.Postgres, open: dbtest.Postgres, driver: "pgx", settings: "plain", plain: true},
	{server: server.MySQL, open: dbtest.MySQL, driver: "mysql", settings: "plain", plain: true},
	{server: server.Postgres, open: dbtest.Postgres, driver: "postgres", settings: "notify", notify: true},
	{server: server.Postgres, open: dbtest.Postgres, driver: "pgx", settings: "notify", notify: true},
	{server: server.Postgres, open: dbtest.Postgres, driver: "pgx", settings: "pgxlock", parse: pgxdriver.Parse},
	{server: server.Postgres, open: dbtest.Postgres, driver: "postgres", settings: "pqlock", parse: pqdriver.Parse},
	{server: server.Postgres, open: dbtest.Postgres, driver: "pgx", settings: "pgxpool", pgxpool: true},
	{server: server.PgBouncer, open: dbtest.PgBouncer, driver: "pgx", settings: "pgxlock", parse: pgxdriver.Parse},
	{server: server.PgBouncer, open: dbtest.PgBouncer, driver: "postgres", settings: "pqlock", parse: pqdriver.Parse},
	{server: server.PgBouncerNewest, open: dbtest.PgBouncerNewest, driver: "pgx", settings: "pgxlock", parse: pgxdriver.Parse},
	{server: server.PgBouncerNewest, open: dbtest.PgBouncerNewest, driver: "postgres", settings: "pqlock", parse: pqdriver.Parse},
	{server: server.Pgpool, open: dbtest.Pgpool, driver: "pgx", settings: "pgxlock", parse: pgxdriver.Parse},
	{server: server.Pgpool, open: dbtest.Pgpool, driver: "postgres", settings: "pqlock", parse: pqdriver.Parse},
	{server: server.PostgresBeta, open: dbtest.PostgresBeta, driver: "pgx", settings: "pgxlock", parse: pgxdriver.Parse},
	{server: server.PostgresBeta, open: dbtest.PostgresBeta, driver: "postgres", settings: "pqlock", parse: pqdriver.Parse},
	{server: server.MySQL, open: dbtest.MySQL, driver: "mysql", settings: "mysqllock", parse: mysqldriver.Parse, parameters: patient},
	{server: server.MySQL, open: dbtest.MySQL, driver: "mysql", settings: "mysqllock, table", parse: mysqldriver.Parse, parameters: patient, table: true},
	{server: server.MariaDBNewest, open: dbtest.MariaDBNewest, driver: "mysql", settings: "mysqllock", parse: mysqldriver.Parse, parameters: patient},
	{server: server.OracleMySQL, open: dbtest.OracleMySQL, driver: "mysql", settings: "mysqllock", parse: mysqldriver.Parse},
	{server: server.MySQL, open: dbtest.MySQL, driver: "mysql", settings: "mysqllock, wake", parse: mysqldriver.Parse, parameters: patient, wake: true},
	{server: server.MariaDBNewest, open: dbtest.MariaDBNewest, driver: "mysql", settings: "mysqllock, wake", parse: mysqldriver.Parse, parameters: patient, wake: true},
	{server: server.OracleMySQL, open: dbtest.OracleMySQL, driver: "mysql", settings: "mysqllock, wake", parse: mysqldriver.Parse, wake: true},
	{server: server.PostgresNewest, open: dbtest.PostgresNewest, driver: "postgres"},
	{server: server.PostgresNewest, open: dbtest.PostgresNewest, driver: "pgx"},
	{server: server.PgBouncer, open: dbtest.PgBouncer, driver: "postgres"},
	{server: server.PgBouncer, open: dbtest.PgBouncer, driver: "pgx"},
	mysqlWith(server.MySQL, dbtest.MySQL, "", nil),
	mysqlWith(server.MySQL, dbtest.MySQL, "found rows, +05:30", foundRows),
	mysqlWith(server.MySQL, dbtest.MySQL, "interpolated, -08:00", interpolated),
	mysqlWith(server.MySQL, dbtest.MySQL, "all, +05:30", everything),
	mysqlWith(server.MariaDBNewest, dbtest.MariaDBNewest, "", nil),
	{server: server.TiDB, open: dbtest.TiDB, driver: "mysql", settings: "mysqllock", parse: mysqldriver.Parse},
	mysqlWith(server.TiDB, dbtest.TiDB, "", nil),
	mysqlWith(server.TiDB, dbtest.TiDB, "all, +05:30", everything),
	mysqlWith(server.OracleMySQL, dbtest.OracleMySQL, "", nil),
	mysqlWith(server.OracleMySQL, dbtest.OracleMySQL, "found rows, +05:30", foundRows),
	mysqlWith(server.OracleMySQL, dbtest.OracleMySQL, "interpolated, -08:00", interpolated),
	mysqlWith(server.OracleMySQL, dbtest.OracleMySQL, "all, +05:30", everything),
}

func mysqlWith(server string, open func(testing.TB) *dbtest.DB, settings string, parameters map[string]string) column {
	return column{server: server, open: open, driver: "mysql", settings: settings, parameters: parameters}
}

// patient is for a machine that stands still for longer than the 10 s that a transaction may be idle.
var patient = map[string]string{"idle_transaction_timeout": "0"}

// What users have in their DSNs, and what must make no difference.
var (
	foundRows    = map[string]string{"clientFoundRows": "true", "parseTime": "true", "time_zone": "'+05:30'"}
	interpolated = map[string]string{"interpolateParams": "true", "time_zone": "'-08:00'"}
	everything   = map[string]string{
		"clientFoundRows": "true", "interpolateParams": "true", "parseTime": "true", "loc": "Asia/Kolkata", "time_zone": "'+05:30'",
	}
)

// TestContract runs the behaviour suite for the chosen cells of the matrix.
func TestContract(t *testing.T) {
	t.Parallel()
	cells, how := chosenCells()
	t.Log(how)
	dbtest.Report(t, "%s", how)
	for _, c := range matrix {
		if testing.Short() && c.server != server.SQLite {
			continue
		}
		t.Run(c.name(), func(t *testing.T) {
			t.Parallel()
			if reason := dbtest.Missing(c.server); reason != "" {
				dbtest.Report(t, "%-44s skipped: %s", c.name(), reason)
				c.open(t) // skips the test, or fails it if the server is required
			}
			for _, cell := range cells {
				if cell.name() == c.name() {
					t.Run(fmt.Sprintf("%v/%v", cell.layout, cell.isolation), func(t *testing.T) {
						t.Parallel()
						cell.run(t, cell.String() == fullest(cells, c.server).String())
					})
				}
			}
		})
	}
}

func (c column) name() string {
	if c.settings == "" {
		return c.server + "-" + c.driver
	}
	return c.server + "-" + c.driver + "-" + c.settings
}

func (c column) isolations() []sqllock.Isolation {
	if c.notify || c.plain || c.pgxpool || c.parse != nil {
		return []sqllock.Isolation{sqllock.Serializable}
	}
	return []sqllock.Isolation{sqllock.Serializable, sqllock.ReadCommitted, sqllock.Autocommit}
}

// run runs one cell on a database of its own: all that runs there if full is true, and else what only this cell
// shows. On SQLite, each test has a database, in virtual time.
func (c cell) run(t *testing.T, full bool) {
	t.Helper()
	layout, isolation := c.layout, c.isolation
	if c.server == server.SQLite {
		db := virtual.Migrated(t, layout)
		c.runCell(t, db.Version(t), contract.Cell{
			Dialect: db.Dialect, Layout: layout, Isolation: isolation, Plain: c.plain, OnlyOwn: !full,
			InBubble: func(tb testing.TB) *sqlx.DB {
				tb.Helper()
				return limited(virtual.Migrated(tb, layout).DB, 8) // to open a connection takes long
			},
		})
		return
	}
	db := c.open(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, &migrations.Options{Layout: layout}))
	if c.table {
		drawFromTable(t, db)
	}
	cell := contract.Cell{Dialect: db.Dialect, Layout: layout, Isolation: isolation, Plain: c.plain, OnlyOwn: !full}
	switch {
	case c.pgxpool:
		cell.Pgx = pgxPool(t, db.DSN)
		cell.DB = sqlx.NewDb(stdlib.OpenDBFromPool(cell.Pgx), c.driver)
		t.Cleanup(func() { must(t, cell.DB.Close()) })
	case c.parse == nil:
		cell.DB = limited(c.pool(t, db), cellPool)
	default:
		dsn := db.DSN
		if server.KindOf(c.server).Behind == "" && c.server != server.TiDB { // one user for all, and grants that need a moment
			dsn, cell.NewTable = withDocumentedGrants(t, db)
		}
		pools := poolsOf(t, c.parse, (&dbtest.DB{Driver: c.driver, DSN: dsn}).With(t, c.parameters), c.wake)
		if c.wake {
			cell.Bell = pools.Bell
		}
		cell.DB, cell.MultiStatements = pools.DB, pools.MultiStatements
		if pools.Acquirers != nil {
			cell.Acquirers = pools.Acquirers.DB
		}
	}
	cell.DB.SetConnMaxIdleTime(time.Second) // the cells share a server's limit
	if cell.Acquirers != nil {
		cell.Acquirers.SetConnMaxIdleTime(time.Second)
	}
	if c.notify {
		listener := check.Value(notify.Listen(t.Context(), db.DSN, nil))(t)
		t.Cleanup(func() { must(t, listener.Close()) })
		cell.Waker = listener
	}
	c.runCell(t, db.Version(t), cell)
}

func (c column) runCell(t *testing.T, version string, cell contract.Cell) {
	t.Helper()
	contract.Run(t, cell, func(r contract.Result) {
		dbtest.Report(t, "%-44s %-8v %-16v %4d run, %d failed  %s", c.name(), cell.Layout, cell.Isolation, r.Run, r.Failed, version)
	})
}

// TestContractInRealTime runs a few tests of the suite with the pool of sqlitelock.Open, SQLite's own clock and
// SQLite's own waits, which must agree with virtual time.
func TestContractInRealTime(t *testing.T) {
	t.Parallel()
	var running sync.WaitGroup
	defer running.Wait()
	run := func(layout dialect.Layout, names ...string) {
		running.Go(func() { // they mostly wait, so together they count as one parallel test
			t.Run(layout.String(), func(t *testing.T) {
				db := dbtest.SQLite(t)
				must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, &migrations.Options{Layout: layout}))
				pools := poolsOf(t, sqlitedriver.Parse, db.DSN, false)
				column{server: server.SQLite, driver: db.Driver, settings: "real time"}.runCell(t, db.Version(t), contract.Cell{
					Dialect: db.Dialect, Layout: layout, Isolation: sqllock.Serializable, DB: pools.DB, Watcher: pools.Watcher, Only: names,
				})
			})
		})
	}
	for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
		run(layout, "Repository/ARowIsNotTakenOverBeforeItExpires")
	}
	run(dialect.Spring7, "Contention/ACounterLosesNoUpdate", "Waiting/LockWaitsForUnlockInAnotherProcess")
}

// cellPool is how many connections a cell may have. A cell whose tests wait for their turn keeps them for a while, so
// a server needs as many for each of its chosen cells, and some for other tests: a full one refuses the next
// connection.
const cellPool = 24

// poolsOf returns the pools that Open would make, only larger: all processes of a cell share them.
func poolsOf(t *testing.T, parse func(string) (session.Target, error), dsn string, wake bool) *session.Pools {
	t.Helper()
	target := check.Value(parse(dsn))(t)
	pools := check.Value(target.Connect(unhurried(t), session.Need{Connections: cellPool, Acquirers: true, Wake: wake}))(t)
	t.Cleanup(func() { must(t, pools.Close()) })
	return pools
}

// pgxPool returns a pool of pgx itself.
func pgxPool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	config := check.Value(pgxpool.ParseConfig(dsn))(t)
	config.MaxConns, config.MaxConnIdleTime = cellPool, time.Second
	pool := check.Value(pgxpool.NewWithConfig(t.Context(), config))(t)
	t.Cleanup(pool.Close)
	return pool
}

func (c column) pool(t *testing.T, db *dbtest.DB) *sqlx.DB {
	t.Helper()
	if c.driver == db.Driver && c.parameters == nil {
		return db.DB
	}
	return db.OpenDSN(t, c.driver, db.With(t, c.parameters))
}
