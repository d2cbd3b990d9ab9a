// Package named keeps leases by their names, for interfaces whose Unlock is given a name and no
// lease.
package named

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sqllock/sqllock"
)

// Locks are the leases that a process holds through such an interface. They are renewed
// automatically, also with the registry's NoRenew: no caller could do it. All methods are safe
// for concurrent use.
type Locks struct {
	registry *sqllock.Registry
	prefix   string

	mu     sync.Mutex
	leases map[string][]*sqllock.Lease // not unlocked; the oldest first, and all but the last are lost
}

// New returns the locks of a registry whose keys are prefix and name.
func New(registry *sqllock.Registry, prefix string) *Locks {
	return &Locks{registry: registry, prefix: prefix, leases: make(map[string][]*sqllock.Lease)}
}

// Lock acquires the lock of name and waits as long as ctx lasts. The errors are those of
// [sqllock.JdbcLock.Lock].
func (l *Locks) Lock(ctx context.Context, name string) error {
	return l.acquire(ctx, name, (*sqllock.JdbcLock).Lock)
}

// TryLock acquires the lock of name if it is free. The errors are those of
// [sqllock.JdbcLock.TryLock].
func (l *Locks) TryLock(ctx context.Context, name string) error {
	return l.acquire(ctx, name, (*sqllock.JdbcLock).TryLock)
}

// A way is a method that acquires a lock.
type way func(*sqllock.JdbcLock, context.Context) (*sqllock.Lease, error)

func (l *Locks) acquire(ctx context.Context, name string, how way) error {
	lease, err := l.obtain(ctx, name, how)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases[name] = append(l.leases[name], lease)
	return nil
}

// obtain returns a new lease of name.
func (l *Locks) obtain(ctx context.Context, name string, how way) (*sqllock.Lease, error) {
	if l.registry == nil {
		return nil, fmt.Errorf("%w: a locker needs a registry", sqllock.ErrInvalid)
	}
	lock, err := l.registry.Obtain(l.prefix + name)
	if err != nil {
		return nil, err
	}
	return how(lock.WithAutoRenew(true), ctx)
}

// Unlock releases the lock of name. It does its work also when ctx has ended. The errors are those
// of [sqllock.Lease.Unlock]; [sqllock.ErrNotHeld] if no lease of name is left.
//
// A caller that has lost its lease may call Unlock while another caller of this process holds the
// lock. Unlock cannot tell the two apart, so it ends the oldest lease: no lease is released before
// as many callers have called Unlock as have held it.
func (l *Locks) Unlock(ctx context.Context, name string) error {
	lease := l.takeOldest(name)
	if lease == nil {
		return l.notHeld(name)
	}
	return lease.Unlock(ctx)
}

// takeOldest removes the oldest lease of name, or returns nil if there is none.
func (l *Locks) takeOldest(name string) *sqllock.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	leases := l.leases[name]
	switch len(leases) {
	case 0:
		return nil
	case 1:
		delete(l.leases, name)
	default:
		l.leases[name] = leases[1:]
	}
	return leases[0]
}

// Renew makes the lease of name last for its whole time-to-live from now. If the lease is lost, Renew
// acquires the lock again if it is free, and the caller of Lock still has one Unlock to call. The
// errors are those of [sqllock.Lease.Renew], joined with that of [Locks.TryLock] after a loss;
// [sqllock.ErrNotHeld] if no lease of name is left.
//
// Renew cannot tell two callers of this process apart either: it renews the newest lease.
func (l *Locks) Renew(ctx context.Context, name string) error {
	lease := l.newest(name)
	if lease == nil {
		return l.notHeld(name)
	}
	lost := lease.Renew(ctx)
	if !errors.Is(lost, sqllock.ErrLockLost) {
		return lost
	}
	again, err := l.obtain(ctx, name, (*sqllock.JdbcLock).TryLock)
	if err != nil {
		return errors.Join(lost, err)
	}
	if !l.replace(name, lease, again) {
		return errors.Join(lost, again.Unlock(ctx)) // the caller has unlocked meanwhile
	}
	return nil
}

// newest returns the newest lease of name, or nil if there is none.
func (l *Locks) newest(name string) *sqllock.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	leases := l.leases[name]
	if len(leases) == 0 {
		return nil
	}
	return leases[len(leases)-1]
}

// replace puts a lease in the place of one that is lost. It returns false if that one has been
// unlocked.
func (l *Locks) replace(name string, lost, by *sqllock.Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.leases[name], lost)
	if i < 0 {
		return false
	}
	l.leases[name][i] = by
	return true
}

func (l *Locks) notHeld(name string) error {
	return fmt.Errorf("%w: %q", sqllock.ErrNotHeld, l.prefix+name)
}
