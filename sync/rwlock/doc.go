// Package rwlock has a read-write lock in the lock table of a [sqllock.Registry]: many
// readers or one writer, over all processes.
//
//	prices, err := rwlock.New(registry, "prices")
//	if err != nil {
//		return err
//	}
//	if err := prices.ExecuteRLocked(ctx, work); err != nil { // beside other readers
//		return err
//	}
//	return prices.ExecuteLocked(ctx, work) // alone
//
// The writer's row is the plain lock of the key itself, a reader's that of "K reader 0", and so on up to [MaxReaders], where K is the
// LOCK_KEY of the key. So both are held by a [sqllock.Lease], which is renewed, lost and released as that of any lock. docs/more.md has
// the rows, and what a crash costs.
//
// # What holds
//
//   - While the write lock is held there is no other writer and no reader.
//   - A writer that waits is not starved by readers: it keeps new readers out while it waits for the present ones.
//   - Readers that wait are not starved by writers. Callers that have to wait do so in turn: in the order of arrival among callers
//     of one [Lock], and between processes if the registry is fair.
//   - A plain lock of the key, by Go or Java, keeps out writers and new readers.
//   - A transaction that a lease has guarded ([sqllock.Lease.Guard]) keeps out those that the lease does until it ends, also if the lease
//     ends before.
//   - A waiter that crashes in its turn delays the others by a time-to-live at most.
//
// # What does not hold
//
//   - A plain lock of the key does not wait for present readers, and its callers do not wait in turn: many of them can starve
//     readers. Do not lock a reader's row.
//   - There is no upgrade from a read lock to the write lock: [Lock.Lock] inside a read lease returns [sqllock.ErrInvalid]. The way
//     back is [Lock.Downgrade].
//   - Contexts know only leases of their own registry. A caller that locks once more through another registry waits for itself.
//   - A lease whose row could not be released counts as held until its time-to-live ends.
//   - A wait for readers, or of a reader for a writer to leave, ends with the first error of the database, also if the registry
//     waits through outages ([sqllock.RegistryOptions]).
//   - In a cluster of several writable servers [sqllock.RepositoryOptions].Layout must not be set: reads would not wait for what was
//     committed on another server.
package rwlock
