package listing

import (
	"cmp"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/printable"
)

// Waiters are the processes that wait for locks for long, by lock.
type Waiters map[place][]sqllock.Waiter

type place struct{ region, lockKey string }

// WaitersOf returns waiters by lock.
func WaitersOf(all []sqllock.Waiter) Waiters {
	byLock := make(Waiters)
	for _, w := range all {
		of := place{w.Region, w.LockKey}
		byLock[of] = append(byLock[of], w)
	}
	return byLock
}

// Of returns those that wait for a lock, those that have waited for longest first. They wait for a permit, a reader's
// place or the writer's if the row is one of a semaphore or of a read-write lock.
func (w Waiters) Of(l Lock) []sqllock.Waiter {
	return w[place{l.Region, cmp.Or(l.Seat.Of, l.LockKey)}]
}

// Total returns how many callers wait, and how long the first of them has waited.
func Total(waiters []sqllock.Waiter) (callers int, longest time.Duration) {
	for _, w := range waiters {
		callers, longest = callers+w.Callers, max(longest, w.Waited)
	}
	return callers, longest
}

// WaitedFor returns the name of the lock that a process waits for, as [Lock.Name] does.
func WaitedFor(w sqllock.Waiter) string { return printable.Text(cmp.Or(w.Key, w.LockKey)) }

// WaitedBy returns the process that waits, or its client id if the process is not known. It is safe to show.
func WaitedBy(w sqllock.Waiter) string { return printable.Text(cmp.Or(w.Process.String(), w.ClientID)) }
