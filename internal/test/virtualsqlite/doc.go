// Package virtualsqlite is SQLite in virtual time: a database/sql driver over the real SQLite
// whose clock is Go's, and whose waits are Go's too. In a [testing/synctest] bubble, leases then
// end by the bubble's clock, which costs nothing. Outside of a bubble it behaves as the driver
// "sqlite" does.
//
// Two things are not SQLite's own. In each statement, 'now' becomes a call of a function that
// returns time.Now. And the wait for another writer is here: SQLite's busy_timeout waits in
// real time, during which a bubble's clock stands still. All else is the real thing: the
// statements are those of the dialect, and transactions, conflicts and files are SQLite's. To
// save time, a connection keeps its statements prepared.
//
// A pool must be opened and closed inside the bubble that uses it.
//
// The package imports nothing that only this project's tests need, because the tests of users
// link it, through package sqllocktest.
package virtualsqlite
