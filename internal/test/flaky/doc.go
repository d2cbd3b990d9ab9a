// Package flaky makes a database fail at a chosen moment. It wraps a database/sql driver and
// calls a [Plan] before and after each operation, which decides whether the operation fails.
// The database underneath is a real one, so a lost response has its real consequences.
package flaky
