package dbtest

import (
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// MySQL returns a new database on the server of SQLLOCK_TEST_MYSQL, a MySQL or a MariaDB. It keeps the parameters of
// the variable's DSN, so tests can run with other settings, such as clientFoundRows=true.
func MySQL(tb testing.TB) *DB {
	tb.Helper()
	return newMySQL(tb, server.MySQL)
}

// MariaDBNewest is [MySQL] on the server of SQLLOCK_TEST_MARIADB_NEWEST.
func MariaDBNewest(tb testing.TB) *DB {
	tb.Helper()
	return newMySQL(tb, server.MariaDBNewest)
}

// OracleMySQL is [MySQL] on the server of SQLLOCK_TEST_ORACLE_MYSQL.
func OracleMySQL(tb testing.TB) *DB {
	tb.Helper()
	return newMySQL(tb, server.OracleMySQL)
}

// TiDB is [MySQL] on the server of SQLLOCK_TEST_TIDB, where leases may be short: it waits for no other server.
func TiDB(tb testing.TB) *DB {
	tb.Helper()
	db := newMySQL(tb, server.TiDB)
	db.Dialect = dialect.TiDB()
	return db
}

func newMySQL(tb testing.TB, name string) *DB {
	tb.Helper()
	serverDSN := DSN(tb, name)
	database := uniqueName(tb)
	isolate(tb, isolation{
		driver: "mysql",
		dsn:    serverDSN,
		create: "CREATE DATABASE " + database,
		drop:   []string{"SET SESSION lock_wait_timeout = 10", "DROP DATABASE " + database},
		name:   "database " + database,
	})
	config, err := mysql.ParseDSN(serverDSN)
	if err != nil {
		tb.Fatalf("%s: %v", server.KindOf(name).Variable, err)
	}
	config.DBName = database
	config.Timeout = time.Minute // the machine may stand still for longer than the 2 s that mysqllock.Open gives a connection
	db := &DB{Name: "mysql", Server: name, Driver: "mysql", DSN: config.FormatDSN(), Dialect: dialect.MySQL()}
	db.DB = open(tb, db.Driver, db.DSN)
	return db
}
