// Package sqllock is a distributed lock that lives in the SQL database an application
// already has: PostgreSQL, MySQL, MariaDB or SQLite. It uses the table of Spring
// Integration's JDBC lock registry, and shares it with Java services.
//
//	registry, err := pgxlock.Open(ctx, dsn, nil) // or pqlock, mysqllock, sqlitelock
//	if err != nil {
//		return err
//	}
//	defer registry.Close(context.WithoutCancel(ctx))
//
//	lease, err := registry.Lock(ctx, "orders/42") // waits
//	if err != nil {
//		return err
//	}
//	err = work(lease.Context())
//	return errors.Join(err, lease.Unlock(ctx)) // ErrLockLost if it was lost meanwhile
//
// Open makes a small pool of its own. To use a pool that the application has, call
// [NewRepository] and [NewRegistry]. The command `sqllock migrate up` or migrations.Up
// creates the table; sqlitelock.Open calls the latter, the other Opens with the option Migrate.
//
// # What a lock is
//
// A lock is a row. REGION and LOCK_KEY are its name, CLIENT_ID is its holder, and
// EXPIRED_AFTER is when it expires. A key is mapped to LOCK_KEY as Spring does it (see
// [SpringKeys]). Acquiring inserts the row, or takes over an expired one. Releasing deletes
// it.
//
// A lock is held for a time, the time-to-live. If its holder crashes, the row expires and
// another process can take the lock. A holder that fails to renew in time loses the lock,
// to other callers in its own process too. It is notified before another holder can acquire
// it: [Lease.Context] ends with cause [ErrLockLost]. For holders that need longer, a registry
// renews leases until they are unlocked, unless [RegistryOptions.NoRenew] is set.
//
// A row is pinned while an open transaction has it locked, for example one in which
// [Lease.Guard] was called. A pinned row cannot be renewed, released or taken over until
// the transaction ends.
//
// # The life of a lease
//
//	              Lock, TryLock                        Unlock
//	(no row) ───────────────────────▶ held ───────────────────────▶ (no row)
//	   ▲                              │  ▲ │
//	   │ DeleteExpired          Renew └──┘ │ time-to-live, less a margin
//	   │                                   ▼
//	expired row ◀─────────────────────── lost: the context ends, cause ErrLockLost;
//	   │                                       Unlock and Renew return ErrLockLost
//	   └──▶ held by the next holder, which takes the row over
//
// # Clocks
//
// The database's clock alone decides when a row expires. The holder counts its lease on its
// own monotonic clock, from before it sent the statement, and stops a margin earlier. The
// two clocks are never compared, so they may be wrong. Only their speed must be right. (A
// suspended machine stops its monotonic clock: after it resumes, a holder may rely on its
// lease for longer than the lease lasts.)
//
// # What a lock does not promise
//
// A process may be stopped between a check of the context and a write to some other system,
// for longer than its lease lasts. The write is then late. A lock alone cannot prevent
// that. Work in the same database can prevent it with [Lease.Guard]; another storage can
// refuse late writes with [Lease.Token].
//
// # Waiting
//
// Callers of one key in one registry queue in the order of arrival. The first of them tries
// to acquire. If the lock is taken it polls the row, at least every
// [RegistryOptions.IdleBetweenTries] and when the row expires, and tries again when the row is
// free. A poll writes nothing, and one statement serves all waiters of a repository. The
// option Wake of Open, or on PostgreSQL a [Waker], wakes it at the release. With sqlitelock.Open it
// polls when the file is written to, and seldom otherwise. Between processes there is an order
// only with [RegistryOptions.Fair].
//
// # More than one
//
// [Registry.ObtainAll] makes one lock of several keys. Package semaphore allows several
// callers at a time, and package rwlock many readers or one writer. All of them consist of
// such rows.
//
// # Errors
//
// errors.Is distinguishes four groups: [ErrNotAcquired], [ErrLockLost], [ErrDatabase] and
// [ErrInvalid]. A try that does not get the lock returns an error: with a nil error the
// lease is held.
package sqllock
