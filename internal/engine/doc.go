// Package engine acquires, holds, renews and releases the locks of one registry: the lease engine of package
// sqllock, which shows it to users.
//
// [Locks] are the locks of a registry. A caller passes a [Request] to [Locks.Lock] and gets a [Use]: one use of a
// hold. A hold is one acquisition by this process: one row, one timer, and the uses that have entered it.
//
//	locks.go, request.go        what the handles of a registry share; what a caller asks for
//	lock.go                     a call that locks: enters again, or waits and gets its lease
//	wait.go, fairness.go        queues, reads, tries and polls, to table.Acquire; how processes share a lock
//	turn.go, wakeup.go          the order of arrival between processes; wake-ups
//	outage.go, silence.go       temporary errors of the database; no answer within a limit
//	hold.go, use.go             one acquisition, and when its lease ends; one use of it, with its context
//	guard.go, transact.go       transactions under a lease
//	release.go, sweep.go        the last Unlock: hand over, keep or delete; leftovers
//	close.go                    the end of a registry
//	renewer.go, pinned.go       all leases by one statement; pinned rows one by one
//	observation.go, naming.go   what observers receive of a call that locks; the names of keys
//
// The package knows the lock table, and nothing of package sqllock: doors.go leads there.
package engine
