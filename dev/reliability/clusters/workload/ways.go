//go:build linux

package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/sync/leader"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// Kinds are the kinds of locks.
var Kinds = []string{lone, joint, write, read, permits, leads}

const (
	lone    = "lock"
	joint   = "joint lock"
	write   = "write lock"
	read    = "read lock"
	permits = "permits"
	leads   = "leader"
)

// most is how many permits there are.
const most = 3

// Names returns what must be possible to acquire after each repair.
func (c Config) Names() []string {
	if c.Shared {
		return []string{write, read}
	}
	return append(slices.Clone(loneKeys), write, read, permits, leads)
}

var loneKeys = []string{"key-0", "key-1", "key-2"}

// A Way is a kind of lock, on some keys.
type Way struct {
	Kind string
	// Names are those of [Config.Names] that can be acquired if this could.
	Names []string

	units history.Hold // that a lease holds besides its rows
	lock  func(renewed bool) locker
}

// A locker is what all locks have in common.
type locker interface {
	Lock(ctx context.Context) (*sqllock.Lease, error)
}

// A trier is a locker that can be tried.
type trier interface {
	TryLock(ctx context.Context) (*sqllock.Lease, error)
	TryLockFor(ctx context.Context, wait time.Duration) (*sqllock.Lease, error)
}

// Ways returns all ways to lock, some of them more than once: those are chosen more often. A joint
// lock's keys are also locked alone.
func Ways(registry *sqllock.Registry) ([]Way, error) {
	var all []Way
	var failed error
	for _, keys := range [][]string{loneKeys[:1], loneKeys[1:2], loneKeys[2:], loneKeys[:2], loneKeys[1:]} {
		lock, err := registry.ObtainAll(keys...)
		kind := map[bool]string{false: lone, true: joint}[len(keys) > 1]
		all = append(all, Way{Kind: kind, Names: keys, lock: func(renewed bool) locker { return lock.WithAutoRenew(renewed) }})
		failed = errors.Join(failed, err)
	}
	shared, err := rwlock.New(registry, "shared")
	failed = errors.Join(failed, err)
	writing := Way{
		Kind: write, Names: []string{write},
		units: history.Hold{Key: "shared", Units: rwlock.MaxReaders, Of: rwlock.MaxReaders},
		lock:  func(renewed bool) locker { return shared.WithAutoRenew(renewed) },
	}
	limited, err := semaphore.New(registry, "limited", most)
	failed = errors.Join(failed, err)
	for n := 1; n <= most; n++ {
		all = append(all, writing, reading(shared), Way{
			Kind: permits, Names: []string{permits},
			units: history.Hold{Key: "limited", Units: n, Of: most},
			lock:  func(renewed bool) locker { return permitLock{limited.WithAutoRenew(renewed), n} },
		})
	}
	leading := Way{Kind: leads, Names: []string{leads}, lock: func(bool) locker { return &term{registry: registry} }}
	return append(all, leading, leading), failed
}

func reading(lock *rwlock.Lock) Way {
	return Way{
		Kind: read, Names: []string{read},
		units: history.Hold{Key: "shared", Units: 1, Of: rwlock.MaxReaders},
		lock:  func(renewed bool) locker { return readLock{lock.WithAutoRenew(renewed)} },
	}
}

// holds returns what a lease holds: its rows alone, and a share of what the rows stand for.
func (w Way) holds(lease *sqllock.Lease) (all []history.Hold) {
	for _, key := range lease.Keys() {
		if key != w.units.Key {
			all = append(all, history.Hold{Key: key, Units: 1, Of: 1})
		}
	}
	if w.units.Key != "" {
		all = append(all, w.units)
	}
	return all
}

// Try acquires a lock this way, and releases it.
func (w Way) Try(ctx context.Context) error {
	lock := w.lock(false)
	lease, err := lock.Lock(ctx)
	if err != nil {
		return fmt.Errorf("%s %v: %w", w.Kind, w.Names, err)
	}
	_ = release(ctx, lock, lease) // it was acquired
	return nil
}

// release unlocks what lock has acquired.
func release(ctx context.Context, lock locker, lease *sqllock.Lease) error {
	if t, ok := lock.(*term); ok {
		return t.end()
	}
	return lease.Unlock(ctx)
}

// readLock is a read lock.
type readLock struct{ of *rwlock.Lock }

func (l readLock) Lock(ctx context.Context) (*sqllock.Lease, error)    { return l.of.RLock(ctx) }
func (l readLock) TryLock(ctx context.Context) (*sqllock.Lease, error) { return l.of.TryRLock(ctx) }
func (l readLock) TryLockFor(ctx context.Context, wait time.Duration) (*sqllock.Lease, error) {
	return l.of.TryRLockFor(ctx, wait)
}

// permitLock is n permits.
type permitLock struct {
	*semaphore.Semaphore

	n int
}

func (l permitLock) Lock(ctx context.Context) (*sqllock.Lease, error) { return l.Acquire(ctx, l.n) }
func (l permitLock) TryLock(ctx context.Context) (*sqllock.Lease, error) {
	return l.TryAcquire(ctx, l.n)
}

func (l permitLock) TryLockFor(ctx context.Context, wait time.Duration) (*sqllock.Lease, error) {
	return l.TryAcquireFor(ctx, l.n, wait)
}

// A term is one term of an elector's.
type term struct {
	registry *sqllock.Registry
	over     chan struct{} // closed when the leader is to stop
	ended    chan error    // has the result of the elector
}

// Lock campaigns until the elector leads.
func (t *term) Lock(ctx context.Context) (*sqllock.Lease, error) {
	elector, err := leader.New(t.registry, "role", nil)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	begun := make(chan *sqllock.Lease)
	t.over, t.ended = make(chan struct{}), make(chan error, 1)
	go func() {
		defer cancel()
		t.ended <- elector.Run(running, func(_ context.Context, lease *sqllock.Lease) error {
			begun <- lease
			<-t.over
			cancel() // one term is enough
			return nil
		})
	}()
	select {
	case lease := <-begun:
		return lease, nil
	case err := <-t.ended:
		return nil, fmt.Errorf("%w: %w", sqllock.ErrNotAcquired, err)
	}
}

// end has the leader stop, and returns why its lease was lost or could not be released.
func (t *term) end() error {
	close(t.over)
	if err := <-t.ended; errors.Is(err, sqllock.ErrLockLost) || errors.Is(err, sqllock.ErrDatabase) {
		return err
	}
	return nil
}
