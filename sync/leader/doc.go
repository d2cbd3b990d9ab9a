// Package leader elects one of several processes for a role, over one lock of a
// [sqllock.Registry]. It is Spring's LockRegistryLeaderInitiator.
//
//	elector, err := leader.New(registry, "scheduler", nil)
//	if err != nil {
//		return err
//	}
//	return elector.Run(ctx, func(ctx context.Context, lease *sqllock.Lease) error {
//		for ctx.Err() == nil {
//			work(ctx)
//		}
//		return nil
//	})
//
// Every process that may lead calls [Elector.Run]. It campaigns until its context ends, and
// calls the function once a term: for as long as this process leads. A term is a lease of the
// role's key, which is renewed automatically whatever the registry's options say.
//
//   - At most one elector leads a role. The context of the function ends before any other
//     process can lead.
//   - When Run's context ends, or [Elector.Resign] is called, the lease is renewed until the
//     function has returned. Then it is released, and the next elector leads.
//   - When the function's own context ends, it must stop, and so must each goroutine that it has started. The context of its lease,
//     [sqllock.Lease.Context], lasts for as long as the lease is held: use it for the last steps.
//
// # How a term ends
//
//	what happens                   | context of the function | then
//	-------------------------------|-------------------------|------------------------------------------
//	Run's context ends             | ends with its cause     | release; Run returns the cause
//	Resign                         | ErrResigned             | release; others first; campaign again
//	the lease is lost              | sqllock.ErrLockLost     | campaign again once the function returns
//	the registry is closed         | sqllock.ErrClosed       | Run returns ErrClosed
//	the function returns nil       | (it has returned)       | release; others first; campaign again
//	the function returns an error  | (it has returned)       | release; Run returns the error
//	it panics, or calls Goexit     | (it has ended)          | release; the panic, or Goexit, goes on
//
// "Others first" means that the elector pauses: it campaigns again when another leads, at
// the latest after [Options].SitOut. An error that the function returns after its context
// has ended does not end Run; [Options].OnError receives it.
// An error of the database does not end the election either: a candidate reports it to OnError, and tries again.
//
// # What does not hold
//
// A function that ignores its context goes on working after the lease is lost, while another
// elector leads. [Options].OnStuck and [Elector.Check] report it; [sqllock.Lease.Guard] and
// [sqllock.Lease.Token] keep its late writes out. Deleting the row by force, as
// `sqllock unlock --force` does, makes two leaders until the next renewal.
package leader
