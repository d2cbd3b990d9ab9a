// Package seats has what locks share that are made of several rows of the lock table: the semaphore
// and the read-write lock.
//
// A seat is a numbered row that one holder can have. Its key is the LOCK_KEY of the lock with a suffix, so
// it is a plain lock of a [sqllock.Registry]: a crash frees it after its time-to-live, and whether
// it is held is decided by its row alone.
//
// A caller that does not get what it wants at once waits in turn. The turn is one more row, which
// one waiter has at a time, over all processes. The others wait for the turn and not for seats, so
// a caller that wants many seats is not overtaken for ever by callers that want one. The turn is
// courtesy and not safety: a waiter that loses it does no harm.
package seats
