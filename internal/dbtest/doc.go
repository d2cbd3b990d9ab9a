// Package dbtest gives tests real databases: SQLite in a file of the test's,
// PostgreSQL and MySQL (or MariaDB) on the servers that the environment
// variables SQLLOCK_TEST_POSTGRES and SQLLOCK_TEST_MYSQL lead to. The command
// cmd/withservers starts such servers and sets the variables:
//
//	go run ./internal/dbtest/cmd/withservers -- go test ./...
//
// Each test gets an empty database of its own, so that tests can run in
// parallel and in any order, on one server: a schema on PostgreSQL, a database
// on MySQL. It is dropped when the test ends; that of a failed test stays,
// and the test's log tells its name.
//
// Nothing is migrated: a test creates the tables that it wants.
//
// Without a server the tests for it are skipped, and say so; with CI=true they
// fail, so that a green CI has tested all databases.
package dbtest
