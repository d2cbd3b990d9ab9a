// Package notify wakes those who wait for a lock at the moment it is released, over
// PostgreSQL's LISTEN and NOTIFY, instead of at their next look:
//
//	listener, err := notify.Listen(ctx, dsn, nil)
//	…
//	defer listener.Close()
//	repository, err := sqllock.NewRepository(db, dialect.Postgres(), &sqllock.RepositoryOptions{Notify: true})
//	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{Waker: listener})
//
// [sqllock.RepositoryOptions.Notify] makes releases tell, [sqllock.RegistryOptions.Waker]
// makes waiters listen. The processes need not agree: one that does neither polls, and
// whoever waits for its locks does so too. docs/notify.md has the trigger that makes
// everything that removes a row tell, a Java service or a DELETE by hand included, and
// what telling costs.
//
// The package links pgconn, the lower half of pgx, whichever driver the application uses
// for its own connections.
package notify
