// Package dbtest gives tests real databases: SQLite in a file of the test's,
// PostgreSQL, PgBouncer, MariaDB and MySQL on the servers that environment
// variables lead to, SQLLOCK_TEST_POSTGRES and others like it. The command
// cmd/withservers starts such servers and sets the variables:
//
//	go run ./internal/test/dbtest/cmd/withservers -- go test ./...
//
// Each test gets an empty database of its own, so that tests can run in
// parallel and in any order, on one server: a schema on PostgreSQL, a database
// on MySQL and behind PgBouncer. It is dropped when the test ends; that of a failed test stays,
// and the test's log tells its name.
//
// Nothing is migrated: a test creates the tables that it wants.
//
// Without a server the tests for it are skipped, and say so. They fail when
// SQLLOCK_REQUIRE, a list of [server.Kinds] with commas in between, names it. CI=true
// alone requires sqlite, postgres, pgbouncer and mysql, so that a green CI has
// tested them.
//
// What was tested where can be shown in a table at the end: see [ReportCell].
package dbtest
