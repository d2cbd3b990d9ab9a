package registry_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/job"
	"github.com/sqllock/sqllock/sync/leader"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// A user has what callers lock with, and a holder in another process.
type user struct {
	*testing.T

	registry *sqllock.Registry
	three    *semaphore.Semaphore
	shelf    *rwlock.Lock
	elector  *leader.Elector
	rival    *sqllock.JdbcLock // of "taken"
	db       *sql.DB
}

// uses are the ways to use a lock, from the call to what ends its use.
var uses = map[string]func(user, context.Context) error{
	"lock":  func(u user, ctx context.Context) error { return u.use(u.registry.Lock(ctx, "k")) },
	"joint": func(u user, ctx context.Context) error { return u.use(obtainAll(u.T, u.registry, "k", "l").Lock(ctx)) },
	"minimum hold": func(u user, ctx context.Context) error {
		return u.use(obtain(u.T, u.registry, "kept").WithMinHold(time.Second).Lock(ctx))
	},
	"entered again, and unlocked from without": func(u user, ctx context.Context) error {
		outer, err := u.registry.Lock(ctx, "k")
		must(u.T, err)
		inner := check.Value(u.registry.Lock(outer.Context(), "k"))(u.T)
		return errors.Join(outer.Unlock(ctx), inner.Unlock(ctx))
	},
	"renewed": func(u user, ctx context.Context) error {
		lease, err := obtain(u.T, u.registry, "k").WithAutoRenew(true).Lock(ctx)
		must(u.T, err)
		time.Sleep(3 * ttl)
		return u.use(lease, lease.Renew(ctx))
	},
	"lost": func(u user, ctx context.Context) error {
		lease, err := u.registry.Lock(ctx, "k")
		must(u.T, err)
		<-lease.Context().Done()
		time.Sleep(time.Second) // the row is over, too
		is(u.T, lease.Unlock(ctx), sqllock.ErrLockLost)
		return nil
	},
	"handed on": func(u user, ctx context.Context) error {
		lease, err := u.registry.Lock(ctx, "k")
		must(u.T, err)
		next := check.Begin(func() error { return u.use(u.registry.Lock(ctx, "k")) })
		synctest.Wait()
		return errors.Join(lease.Unlock(ctx), <-next)
	},
	"guarded": func(u user, ctx context.Context) error {
		return u.registry.ExecuteLockedTx(ctx, "k", u.db, nil, func(context.Context, *sql.Tx) error { return nil })
	},
	"refused": func(u user, ctx context.Context) error { return u.refused(u.registry.TryLock(ctx, "taken")) },
	"waited in vain": func(u user, ctx context.Context) error {
		return u.refused(u.registry.TryLockFor(ctx, "taken", time.Minute)) // which is reported, too
	},
	"queued in vain": func(u user, ctx context.Context) error {
		first := check.Begin(func() error { return u.refused(u.registry.TryLockFor(ctx, "taken", time.Second)) })
		synctest.Wait()
		return errors.Join(u.refused(u.registry.TryLockFor(ctx, "taken", time.Second)), <-first)
	},
	"left": func(u user, ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		return u.refused(u.registry.Lock(ctx, "taken"))
	},
	"a permit":    func(u user, ctx context.Context) error { return u.use(u.three.Acquire(ctx, 1)) },
	"two permits": func(u user, ctx context.Context) error { return u.use(u.three.Acquire(ctx, 2)) },
	"permits in turn": func(u user, ctx context.Context) error {
		all, err := u.three.Acquire(ctx, 3)
		must(u.T, err)
		waiting := check.Begin(func() error { return u.use(u.three.Acquire(ctx, 3)) })
		time.Sleep(time.Second)
		return errors.Join(u.refused(u.three.TryAcquire(ctx, 1)), all.Unlock(ctx), <-waiting)
	},
	"reader": func(u user, ctx context.Context) error { return u.use(u.shelf.RLock(ctx)) },
	"writer": func(u user, ctx context.Context) error { return u.use(u.shelf.Lock(ctx)) },
	"writer behind a reader": func(u user, ctx context.Context) error {
		reader, err := u.shelf.RLock(ctx)
		must(u.T, err)
		writing := check.Begin(func() error { return u.use(u.shelf.Lock(ctx)) })
		time.Sleep(time.Second)
		return errors.Join(reader.Unlock(ctx), <-writing)
	},
	"downgraded": func(u user, ctx context.Context) error {
		writer, err := u.shelf.Lock(ctx)
		must(u.T, err)
		return u.use(u.shelf.Downgrade(ctx, writer))
	},
	"job": func(u user, ctx context.Context) error {
		return job.New(u.registry, "job", 0, func(context.Context) error { return nil }, job.UntilSuccess())(ctx)
	},
	"term": func(u user, ctx context.Context) error {
		done := errors.New("done")
		is(u.T, u.elector.Run(ctx, func(context.Context, *sqllock.Lease) error { return done }), done)
		return nil
	},
}

func (u user) use(lease *sqllock.Lease, err error) error {
	must(u.T, err)
	return lease.Unlock(u.Context())
}

func (u user) refused(_ *sqllock.Lease, err error) error {
	is(u.T, err, sqllock.ErrNotAcquired)
	return nil
}

// TestReachable_NothingOfACallerAfterItsLease has callers use locks in all ways, and counts
// which of them the registry, the semaphore or the read-write lock still reach afterwards: by
// the contexts that they have locked with.
func TestReachable_NothingOfACallerAfterItsLease(t *testing.T) {
	t.Parallel()
	check.Long(t)
	for name, observers := range map[string][]*observe.Observer{
		"plain":    {{Waiting: func(context.Context, observe.Wait) {}}}, // otherwise it would be logged
		"observed": {observe.SlogObserver(slog.New(slog.DiscardHandler))},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newFixture(t, sqllock.Serializable)
				registry := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: ttl, HandOff: true, Observers: observers, NoRenew: true})
				u := user{
					T: t, registry: registry, rival: obtain(t, s.another(sqllock.Serializable).registry, "taken"), db: s.db.DB.DB,
					three: check.Value(semaphore.New(registry, "three", 3))(t), shelf: check.Value(rwlock.New(registry, "shelf"))(t),
					elector: check.Value(leader.New(registry, "role", nil))(t),
				}
				must(t, check.ErrorOf(u.rival.WithAutoRenew(true).Lock(t.Context())))
				for name, use := range uses {
					caller := useOnce(u, use)
					time.Sleep(3 * ttl) // the runtime keeps timers that were stopped, until their time or longer
					for range 3 {       // what a sync.Pool has is freed by the second
						runtime.GC()
					}
					if caller.Value() != nil {
						t.Errorf("%s: the context of its caller is still reachable", name)
					}
				}
				runtime.KeepAlive(u)
			})
		})
	}
}

// useOnce has a caller of its own use a lock, and returns what only that knows. In a
// goroutine, no stack of the test keeps it.
func useOnce(u user, use func(user, context.Context) error) weak.Pointer[[1 << 10]byte] {
	type key struct{}
	var caller weak.Pointer[[1 << 10]byte]
	must(u.T, <-check.Begin(func() error {
		value := new([1 << 10]byte)
		caller = weak.Make(value)
		return use(u, context.WithValue(u.Context(), key{}, value))
	}))
	return caller
}
