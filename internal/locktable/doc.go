// Package locktable reads and writes the lock table; the root package sends no SQL. It knows
// rows and claims, but no lease, no registry and no key as the user wrote it.
//
// A row belongs to the CLIENT_ID that stands in it, here called the holder, until it expires by
// the clock of the database. Each acquisition has a holder of its own, so a late statement of
// one never touches the row of another. Durations cross the border, instants never do.
//
// A row is pinned while a transaction other than that of the statement has it locked: that of a guard, of an attempt, or of a
// program that knows nothing of locks. What a verb does then is in policies.go and in the README: it waits, tries again,
// skips the row, or fails with an error of kind [dbcall.PinnedRow].
//
// A [Table] is made of parts, each with some verbs. A part is a type that knows what it needs, and sends its statements by a
// database:
//
//	table.go, open.go, policies.go  the table; how it is made; how long and how often each verb is tried
//	database.go                     where rows are; statements that are divided
//	change.go, current.go           changes of rows, without a policy; reads on a server of a cluster that has caught up
//	acquire.go, leftover.go         acquisitions; leftovers: rows that an attempt may have left behind
//	write.go, many.go               the sender of acquisitions: a claim, a batch; how several rows are written, of a batch or a joint claim
//	acquirers.go, token.go          sessions that acquire without an explicit transaction; fencing tokens
//	release.go, park.go, keep.go    releases: the ways in which a lease ends
//	renew.go, guard.go              renewals; guards: transactions under a lease
//	read.go, pin.go                 reads and polls; pins: who has a row locked
//	delete.go                       deletions for other reasons
//	batch.go                        batched: a verb for one row becomes one for many
//	bell.go                         bells: wake-ups on MySQL and MariaDB
//
// Below it stand stmt (what a claim, a row and a statement are), dbcall (how a statement is sent again, and what errors mean),
// probe (what a server and its table are), poll, turns, and names (the table of names).
//
// The README beside this file says what the statements are, and why.
package locktable
