// Package simulation runs the library in thousands of random schedules and checks its promises
// in each instant. The code under test is the real one, over a real SQLite; only the time, the
// network and the processes are simulated.
//
// A [World] is a database and up to four processes that share it, in a synctest bubble. About ten
// minutes of virtual time pass in a second. A [Plan], which a seed determines, has its settings:
// one of four shapes, the options of each process, and the faults. The callers in the processes
// lock, work, renew, enter again, write in guarded transactions and unlock at random, while the
// faults of the plan occur: see [Fault]. Then the faults end, and every lock must be available
// again.
//
// # One instant
//
// A statement is under way for a random time, takes effect in one instant, and its answer is
// under way for another: see send in conn.go. After each commit the tables are compared with what
// all callers have been told. There is one clock, so what the witness finds is exact. The clock of
// the database may be wrong by years, and be faster or slower by one percent.
//
// # Repeating a seed
//
// Each actor and each statement has random numbers of its own, made from the seed. What Go itself
// leaves to chance in a bubble (the order of timers of one instant, of ready channels, and of maps)
// is taken from a fixed sequence, if the simulation is compiled with the changes to Go's runtime that
// package overlay makes. Each world has a process of its own, with one processor and
// without garbage collection. So a seed has one history, alone and among others. Without these changes,
// as under the race detector, it may have another one each time.
//
// # What is checked
//
// In each instant (witness.go, rows.go):
//
//   - there are never two callers whose leases of one key last, alone or together with others;
//   - a caller that is given a lease has the row;
//   - a row is never changed while the lease of its holder lasts, nor by another process before
//     it expires, unless it was deleted by force;
//   - no lease lasts for longer than its row, than MaxHold allows, or than a while after its row
//     was deleted by force; and its context ends by itself;
//   - no renewal changes a row that has expired;
//   - the row of a lock with a minimum hold stays until that has passed;
//   - the tokens of a key rise from lease to lease, and leases of one re-entry share one;
//   - a guarded write is committed before a later holder has the lock, or never;
//   - no read lease lasts while another caller's write lease does, from Downgrade neither; and a permit
//     is one of those that there are.
//
// At each call (calls.go, attempts.go, worker.go): it returns when its context, its lease or its
// limit has ended, or 1.5 s after that; its error is of the kinds that it documents, and of one
// only, unless it joins several; nothing fails while nothing is wrong, unless statements wait for each
// other for long; a wait through outages does
// not end because of one; ExecuteLockedTx has committed exactly if it returns nil; no attempt is
// refused because of a row that its own process has left behind; and Close leaves no row unless it
// returns an error. The last two hold where no statement arrives after its caller has returned.
// Semaphores and read-write locks do not promise that no attempt is refused because of such a row.
//
// In contended worlds no caller is overtaken by those of other processes more than a number of times.
//
// While there are no faults: no caller waits for a lock that has been free for 5 s plus
// IdleBetweenTries, nor for permits or a read-write lock that have been free for a time-to-live more.
// When all processes have ended: every key can be locked within 5 s plus the longest minimum hold;
// no connection and no subscription is left; a registry has kept no more than keys and statements
// explain. At the very end the bubble itself checks that no goroutine is left.
//
// # What is not simulated
//
//   - Other servers than SQLite: their locking is tested on them.
//   - A process that is stopped between two instructions: package reliability does that. Pauses of
//     callers are simulated.
//   - A driver that ignores the context of a transaction: database/sql waits for its statement with
//     a mutex, and a bubble's clock stands still while a goroutine waits for a mutex. In
//     transactions all drivers return when the context ends. The statement of one that simulates
//     lib/pq arrives nevertheless.
package simulation
