// Package sqllock is a distributed lock that lives in the SQL database an
// application already has: PostgreSQL, MySQL, MariaDB or SQLite. It uses the
// table of Spring Integration's JDBC lock registry, and shares it with Java
// services.
//
//	repository, err := sqllock.NewRepository(db, dialect.Postgres(), nil)
//	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: 30 * time.Second})
//	defer registry.Close(ctx)
//
//	lock, err := registry.Obtain("orders/42")
//	lease, err := lock.Lock(ctx) // waits
//	if err != nil {
//		return err
//	}
//	defer lease.Unlock(ctx)
//	work(lease.Context())
//
// The table is created by `sqllock migrate up` or package migrations.
//
// # What a lock is
//
// A lock is a row: REGION and LOCK_KEY are its name, CLIENT_ID says who holds it,
// EXPIRED_AFTER until when. A key is mapped to LOCK_KEY as Spring does it (see
// [SpringKeys]). To acquire is to insert the row, or to take over an expired one;
// to release is to delete it.
//
// A lock is held for a time, the time-to-live, and this time means the same for
// everyone. If the holder dies, others get the lock when its time is up. If it
// lives but is late, it loses the lock, to others in its own process too, and is
// told before: [Lease.Context] ends with cause [ErrLockLost]. A holder that needs
// longer calls [Lease.Renew].
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
//	   └──▶ held by the next, who takes the row over
//
// # Clocks
//
// The database's clock alone decides when a row expires. The holder counts its
// lease on its own monotonic clock, from before it sent the statement, and stops
// a margin earlier. The two are never compared, so clocks may be wrong; only their
// speed must be right. (A machine that is suspended stops its monotonic clock: after
// it has woken, a holder may believe in its lease for longer than it lasts.)
//
// # What a lock does not promise
//
// Between a look at the context and a write to some other system, a process may
// be stopped for longer than its lease lasts, and the write then comes late. No
// lock can prevent that alone. Work that reads and writes the same database should
// rely on that database's own transactions for its integrity and on the lock for
// its order.
//
// # Waiting
//
// Callers of one key in one registry queue in the order of arrival. The first of
// them tries; if the lock is taken it looks at the row every
// [RegistryOptions.IdleBetweenTries] or when the lease must end, and tries again
// when the row is free. Looking writes nothing. On PostgreSQL a [Waker] can wake it
// at the release. Between processes there is no order.
//
// # Errors
//
// errors.Is tells four kinds apart: [ErrNotAcquired], [ErrLockLost],
// [ErrDatabase] and [ErrInvalid]. A failed try is an error: no lease, no lock.
package sqllock
