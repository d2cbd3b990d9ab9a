// Package engine acquires, holds, renews and releases the locks of one registry: the lease engine of package
// sqllock, which shows it to users.
//
// [Locks] are the locks of a registry. A caller passes a [Request] to [Locks.Lock] and gets a [Use]: one use of a
// hold. A hold is one acquisition by this process: one row, one timer, and the uses that have entered it.
//
// A call that locks goes through lock.go, wait.go (queue.go, wakeup.go, outage.go) and table.Acquire; one that unlocks
// through use.go and release.go. What AutoRenew does stands in renewer.go and pinned.go, what [Locks.Close] does in
// close.go. The package knows the lock table, and nothing of package sqllock: doors.go leads there.
package engine
