// Package named keeps leases by their names, for interfaces whose Unlock is given a name and no
// lease.
package named

import (
	"context"
	"fmt"
	"sync"

	"github.com/sqllock/sqllock"
)

// Locks are the leases that a process holds through such an interface. They are renewed
// automatically, whatever the registry's options say: no caller could do it. All methods are safe
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

func (l *Locks) acquire(ctx context.Context, name string, how func(*sqllock.JdbcLock, context.Context) (*sqllock.Lease, error)) error {
	lock, err := l.registry.Obtain(l.prefix + name)
	if err != nil {
		return err
	}
	lease, err := how(lock.WithAutoRenew(true), ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases[name] = append(l.leases[name], lease)
	return nil
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

// Renew makes the lease of name last for its whole time-to-live from now. The errors are those of
// [sqllock.Lease.Renew]; [sqllock.ErrNotHeld] if no lease of name is left.
func (l *Locks) Renew(ctx context.Context, name string) error {
	l.mu.Lock()
	leases := l.leases[name]
	l.mu.Unlock()
	if len(leases) == 0 {
		return l.notHeld(name)
	}
	return leases[len(leases)-1].Renew(ctx)
}

func (l *Locks) notHeld(name string) error {
	return fmt.Errorf("%w: %q", sqllock.ErrNotHeld, l.prefix+name)
}
