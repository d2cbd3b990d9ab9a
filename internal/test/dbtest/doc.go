// Package dbtest provides real databases for tests: SQLite in a temporary file, and PostgreSQL, PgBouncer, Pgpool-II,
// MariaDB and MySQL on the servers of environment variables such as SQLLOCK_TEST_POSTGRES. The command cmd/withservers
// starts the servers and sets the variables:
//
//	go run ./internal/test/dbtest/cmd/withservers -- go test ./...
//
// Each test gets an empty database of its own, so tests can run in parallel and in any order: a schema on PostgreSQL,
// a database on MySQL and behind PgBouncer. It is dropped when the test ends. If the test fails, it is kept, and the
// test's log has its name. A test creates the tables that it needs; dbtest runs no migrations.
//
// If a server is missing, its tests are skipped with a message. They fail if SQLLOCK_REQUIRE, a comma-separated list
// of [server.Kinds], contains the server. CI=true alone requires sqlite, postgres, pgbouncer, pgpool and mysql,
// with SQLLOCK_TEST_ALL=1 also pgbouncer-newest, postgres-newest, mariadb-newest and oracle-mysql.
//
// A test that starts servers of its own begins with [OwnServers].
//
// [Report] collects what was tested on which database, for a list at the end.
package dbtest
