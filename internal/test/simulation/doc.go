// Package simulation runs the library in thousands of schedules that no test would think of,
// and checks its promises in each instant. The code under test is the real one, over a real
// SQLite; only the time, the network and the processes are simulated.
//
// A [World] is a database and up to four processes that share it, in a synctest bubble, whose
// clock costs nothing: about ten minutes of virtual time pass in a second. A [Plan], which
// a seed determines, says what it is made of. The callers in its processes lock, work, renew,
// enter again, write in guarded transactions and unlock at random, while all goes wrong that
// is listed as a [Fault]. Then the faults end, and all must be well again.
//
// # One instant
//
// A statement is under way for a random time, takes effect in one instant, and its answer is
// under way for another: see send in conn.go. Each actor has random numbers of its own, and
// no two messages arrive in one instant. So a world takes the same course again when it has one
// processor and the same seed. There is one clock, so what the witness finds is exact. The
// clock of the database may be wrong by years, and be faster or slower by one percent.
//
// # What is checked
//
// In each instant (witness.go):
//
//   - there are never two callers whose leases of one key last;
//   - a row is never changed while a caller's context lasts, unless it was deleted by force;
//   - the tokens of a key rise from lease to lease, and leases of one re-entry share one;
//   - a guarded write is committed before a later holder has the lock, or never.
//
// At each call (process.go, worker.go): the error is of the kinds that the call documents, and
// only of one; it returns when its context, its lease or its limit has ended, or soon after;
// nothing fails while nothing is wrong; ExecuteLockedTx has committed exactly if it says so.
//
// When the faults have ended: every key can be locked within the longest time-to-live; no
// caller waits for a lock that is free; Close succeeds and leaves no row; the maps of
// a registry have no more elements than keys and statements explain. At the very end the bubble
// itself checks that no goroutine is left, and the network that no connection is.
//
// # What is not simulated
//
// Other servers than SQLite: their locking is tested on them. A goroutine that is stopped
// between two statements of Go; a caller's pause is simulated, and package reliability stops
// processes. database/sql waits with a mutex for a statement of a transaction whose context has
// ended, and a bubble's clock stands still while a goroutine waits for a mutex. So in
// transactions all drivers return when the context ends, also those that simulate lib/pq, whose
// statement then arrives nevertheless. A limited number of connections is the network's, not
// database/sql's, which serves those that wait in random order.
package simulation
