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
// The writer's row is the plain lock of the key itself. A reader's row is the plain lock of the key
// "K reader 0", and so on up to [MaxReaders], where K is the LOCK_KEY of the key: all keys that the
// [sqllock.KeyMapper] maps to it are one lock. So both locks are held by a [sqllock.Lease], which
// is renewed, lost and released as that of any lock. If a holder crashes, its row is free when its
// time-to-live has ended.
//
// # What holds
//
//   - While the write lock is held there is no other writer and no reader. A reader first
//     acquires its row, and then reads the writer's, which must be free. A writer first
//     acquires its row, and then reads those of the readers. Each reads after its own row was
//     committed, so at least one of them sees the other. If both do, the reader retries.
//   - A writer that waits is not starved by readers. It has its row while it waits for the
//     present readers, and that keeps new readers out.
//   - Readers that wait are not starved by writers. Callers that have to wait do so in
//     turn: a row with the key "K reader turn" shows that a caller has the turn. Then no
//     other writer acquires the lock. The turn is passed on in no particular order between
//     processes unless the registry is fair, and in the order of their arrival among callers of one [Lock].
//   - A plain lock of the key, by Go or Java, keeps out writers and new readers.
//   - A transaction that a lease has guarded ([sqllock.Lease.Guard]) keeps out those that the lease
//     does until it ends, also if the lease ends before. So a caller that finds a row whose lease has
//     ended acquires it and releases it again, which waits for such a transaction.
//   - A waiter that crashes in its turn delays the others by a time-to-live at most.
//
// # What does not hold
//
//   - A plain lock of the key does not wait for present readers, and callers of plain locks
//     do not wait in turn: many of them can starve readers.
//   - There is no upgrade from a read lock to the write lock: [Lock.Lock] inside a read lease returns
//     [sqllock.ErrInvalid]. The way back is [Lock.Downgrade].
//   - Contexts know only leases of their own registry. A caller that locks once more through another
//     registry waits for itself.
//   - A lease whose row could not be released, because the database did not answer, counts as held
//     until its time-to-live ends.
//   - A wait for readers, or for a writer to leave, ends with the first error of the
//     database, also if the registry waits through outages ([sqllock.RegistryOptions]). A
//     caller that waits for its turn, and a writer that waits for the writer's row, keep
//     waiting, and get [sqllock.ErrNotAcquired] if their limit ends meanwhile.
//   - A plain lock of a reader's row is not the read lock, although writers wait for it. It does not look
//     for a writer. Do not lock those rows.
//   - In a cluster of several writable servers, a read must see what was committed on another
//     server. If sqllock finds Galera or a replication group of MySQL, its reads wait for that.
//     With [sqllock.RepositoryOptions].Layout it does not ask, and they do not wait.
package rwlock
