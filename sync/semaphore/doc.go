// Package semaphore limits how many callers of all processes do something at once: a semaphore with
// up to [MaxPermits] permits, in the lock table of a [sqllock.Registry].
//
//	printers, err := semaphore.New(registry, "printers", 3)
//	if err != nil {
//		return err
//	}
//	return printers.Execute(ctx, 1, func(ctx context.Context) error {
//		return print(ctx) // at most three at a time
//	})
//
// A permit is a row: permit 0 is the plain lock of the key "K permit 0", where K is the LOCK_KEY of
// the semaphore's key: all keys that the [sqllock.KeyMapper] maps to it are one semaphore. So a permit
// is held by a [sqllock.Lease], which is renewed, lost and released as that of any lock. If its holder
// crashes, its permits are free when their time-to-live has ended. A caller that acquires several
// permits gets all or none: they are one joint lock (see [sqllock.Registry.ObtainAll]) with one lease.
//
// # What holds
//
//   - No more permits are held at once than the largest number that any process has passed to [New]
//     for the key.
//   - A caller that wants many permits is not overtaken for ever by callers that want few, in
//     whichever processes they are: who finds too few waits in turn, in the order of arrival among callers of one [Semaphore], and
//     between processes if the registry is fair.
//   - A waiter that crashes in its turn delays the others by the time-to-live of the registry at most.
//
// # What does not hold
//
//   - There is no re-entry. A caller that acquires inside a permit takes another one. Callers that hold
//     permits while they wait for more can wait for each other: acquire all that are needed at once.
//   - A fencing token is higher than those of earlier leases of the same permits. It is not comparable
//     with those of others that hold permits at the same time.
//   - A permit that could not be released counts as held until its time-to-live ends.
//   - While a caller has the turn, its wait ends with the first error of the database, also if
//     the registry waits through outages ([sqllock.RegistryOptions]).
//   - Processes that pass different numbers to New share the permits with lower numbers. After the number is lowered, those that hold
//     permits with higher numbers keep them, and callers with the new number do not see them.
package semaphore
