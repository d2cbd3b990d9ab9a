// Package contract is a test suite of the behaviour that sqllock promises. Every combination of database, driver,
// table layout and isolation must pass all of it: a difference that a user could notice is a bug. To run it for a new
// combination, fill in a [Cell] and call [Run]. SPRING.md lists the behaviours that Spring's tests show, each with
// the test of ours.
package contract
