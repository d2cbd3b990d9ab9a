// Package notify wakes up waiters as soon as a lock is released, with PostgreSQL's LISTEN and NOTIFY. Without it,
// waiters find out at their next poll.
//
//	listener, err := notify.Listen(ctx, dsn, nil) // one for the process
//	…
//	defer listener.Close()
//	repository, err := sqllock.NewRepository(ctx, db, dialect.Postgres(),
//		&sqllock.RepositoryOptions{Notify: true}) // releases notify
//	registry, err := sqllock.NewRegistry(repository,
//		&sqllock.RegistryOptions{Waker: listener}) // waiters listen
//
// Each process chooses both options for itself. A process without Waker polls. A waiter finds the release of a
// process without Notify at its next poll.
//
// docs/waiting.md has a trigger that notifies of all deleted rows, including those of a Java service or of a DELETE by
// hand. It also describes what notifications cost.
//
// The package links pgconn, the lower half of pgx, even if the application itself uses another driver.
package notify
