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
//     for the key. The rows alone decide that.
//   - A caller that wants many permits is not overtaken for ever by callers that want few, in
//     whichever processes they are. If there are too few permits for a caller, it waits in turn. The
//     turn is the plain lock of the key "K permit turn": while a waiter has it, no other caller
//     acquires. Callers of one [Semaphore] get it in the order of their arrival, and processes in
//     no particular order unless the registry is fair. A process whose callers have had it for ten IdleBetweenTries of their
//     registry, one after the other, leaves it to others for a moment.
//   - A waiter that crashes in its turn delays the others by the time-to-live of the registry at most.
//
// # What does not hold
//
//   - There is no re-entry. A caller that acquires inside a permit takes another one. Callers that hold
//     permits while they wait for more can wait for each other: acquire all that are needed at once.
//   - A fencing token is higher than those of earlier leases of the same permits. It is not comparable
//     with those of others that hold permits at the same time.
//   - A permit that could not be released, because the database did not answer, counts as held until
//     its time-to-live ends.
//   - While a caller has the turn, its wait ends with the first error of the database, also if
//     the registry waits through outages ([sqllock.RegistryOptions]). A caller that waits for
//     its turn keeps waiting, and gets [sqllock.ErrNotAcquired] if its limit ends meanwhile.
//
// # Changing the number of permits
//
// Processes may pass different numbers to New, as they do while a new version is being deployed. They
// share the permits with lower numbers. After the number is lowered, those that hold permits with
// higher numbers keep them until they unlock them, and callers with the new number do not see them:
// until then more permits can be held than the new number, and never more than the old one.
package semaphore
