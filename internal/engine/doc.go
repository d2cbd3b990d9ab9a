// Package engine acquires, holds, renews and releases the locks of one registry: the lease engine of package
// sqllock, which shows it to users.
//
// [Locks] are the locks of a registry. A caller passes a [Request] to [Locks.Lock] and gets a [Use]: one use of a
// hold. A hold is one acquisition by this process: one row, one timer, and the uses that have entered it.
//
//	locks.go, request.go        what the handles of a registry share; what a caller asks for
//	lock.go                     a call that locks: enters again, or waits and gets its lease
//	wait.go, joint.go           queues, reads, tries and polls, to Table.Acquisitions; how a joint lock queues at several keys
//	turn.go, wakeup.go          the order of arrival between processes; wake-ups
//	outage.go, silence.go       temporary errors of the database; no answer within a limit
//	local.go                    local locks: what all holds of one key in a registry share
//	hold.go, use.go             one acquisition, and its lease: when it ends; one use of it, with its context
//	loss.go                     why a lease is over, as its holder is told
//	guard.go, transact.go       transactions under a lease
//	release.go, sweep.go        the last Unlock: hand over, keep, park or delete; what deletes leftovers, and parked rows
//	close.go                    the end of a registry
//	renewer.go, pinned.go       all leases by one statement; pinned rows one by one
//	overdue.go                  leases that are renewed before a guard pins their rows
//	background.go               what runs beside the callers, and the end of a lease that a renewal finds lost
//	naming.go, notice.go        for other processes: the names of keys; what callers have waited for for long
//
// The package knows the lock table, and nothing of package sqllock: unwrap.go leads there.
package engine
