package exec

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// A claim acquires what is wanted. All kinds of locks have these two methods, by different names.
type claim struct {
	lock    func(context.Context) (*sqllock.Lease, error)                // waits as long as the context lasts
	lockFor func(context.Context, time.Duration) (*sqllock.Lease, error) // 0 is a single try
}

// claim returns the claim in a registry.
func (x *execution) claim(registry *sqllock.Registry) (claim, error) {
	switch {
	case x.permits > 0:
		return x.claimPermits(registry)
	case x.shared || x.exclusive:
		return x.claimReadWrite(registry)
	default:
		return x.claimPlain(registry)
	}
}

func (x *execution) claimPlain(registry *sqllock.Registry) (claim, error) {
	lock, err := registry.ObtainAll(x.keys()...)
	if err != nil {
		return claim{}, err
	}
	if !x.untilSuccess {
		lock = lock.WithMinHold(x.minHold)
	}
	return claim{lock.Lock, lock.TryLockFor}, nil
}

func (x *execution) claimPermits(registry *sqllock.Registry) (claim, error) {
	s, err := semaphore.New(registry, x.key, x.permits)
	if err != nil {
		return claim{}, err
	}
	return claim{
		lock: func(ctx context.Context) (*sqllock.Lease, error) { return s.Acquire(ctx, x.take) },
		lockFor: func(ctx context.Context, wait time.Duration) (*sqllock.Lease, error) {
			return s.TryAcquireFor(ctx, x.take, wait)
		},
	}, nil
}

func (x *execution) claimReadWrite(registry *sqllock.Registry) (claim, error) {
	lock, err := rwlock.New(registry, x.key)
	if err != nil {
		return claim{}, err
	}
	if x.shared {
		return claim{lock.RLock, lock.TryRLockFor}, nil
	}
	return claim{lock.Lock, lock.TryLockFor}, nil
}

// A holding is an acquired lock, with its registry and connection.
type holding struct {
	connection *connect.Connection
	registry   *sqllock.Registry
	lease      *sqllock.Lease
}

// left returns how long the lease still lasts.
func (h *holding) left() time.Duration {
	for _, held := range h.registry.Held() {
		return time.Until(held.Deadline)
	}
	return 0
}

// abandonTimeout is longer than a statement waits that the caller has left: see session.Settings.
const abandonTimeout = 1500 * time.Millisecond

// abandon closes the registry and the connection of a lock that was not acquired. A statement that had no
// answer may still have written the row, which would stay for the time-to-live.
func (h *holding) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	_, _ = answered(ctx, 0, func() (struct{}, error) { return struct{}{}, h.registry.Close(ctx) })
	h.connection.Close()
}

// close closes the registry and the connection after the lease was unlocked.
func (h *holding) close(ctx context.Context) {
	// If Unlock failed, this tries again to delete the row, which expires in any case.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = answered(ctx, 0, func() (struct{}, error) { return struct{}{}, h.registry.Close(ctx) })
	h.connection.Close()
}
