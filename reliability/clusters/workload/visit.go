//go:build linux

package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/reliability/clusters/history"
)

// A visit is one call that locks, and what is done under the lease.
type visit struct {
	*worker
	r       *rand.Rand
	key     string
	renewed bool // by AutoRenew

	lease *sqllock.Lease
	id    string // of the lease
}

// do returns false if the lock was not acquired.
func (v *visit) do(ctx context.Context) bool {
	if !v.acquire(ctx) {
		return false
	}
	ended := v.watch() //nolint:contextcheck // the lease's own context is watched
	v.hold(ctx)
	if !v.renewed && v.r.IntN(6) == 0 {
		<-v.lease.Context().Done() // it ends by itself
		ended()
		return true
	}
	ended() // who unlocks holds the lock no longer, although the context ends a little later
	v.release(ctx)
	return true
}

func (v *visit) acquire(ctx context.Context) bool {
	lock, err := v.registry.Obtain(v.key)
	if err != nil {
		v.fatal("obtain", err)
		return false
	}
	lock = lock.WithAutoRenew(v.renewed)
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	e := history.Event{Op: history.Acquire, Key: v.key, From: history.Now()}
	switch v.r.IntN(3) {
	case 0:
		v.lease, err = lock.TryLock(ctx)
	case 1:
		v.lease, err = lock.TryLockFor(ctx, time.Duration(1+v.r.IntN(3000))*time.Millisecond)
	default:
		// The context of the lease must not end with that of the wait.
		v.lease, err = v.lock(ctx, limited, lock)
	}
	e.To = history.Now()
	if err != nil {
		e.Err = err.Error()
		v.log.Add(e)
		v.wantKind(ctx, err)
		return false
	}
	v.id = fmt.Sprintf("%d.%d.%d", v.Process, v.Life, v.leases.Add(1))
	e.Lease, e.Token = v.id, v.lease.Token()
	v.log.Add(e)
	v.tell()
	return true
}

// lock waits with a limit of which the lease knows nothing.
func (v *visit) lock(ctx, limited context.Context, lock *sqllock.JdbcLock) (*sqllock.Lease, error) {
	waiting, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(limited, func() { cancel(limited.Err()) })
	lease, err := lock.Lock(waiting)
	stop()
	return lease, err
}

// wantKind notes an error of a kind that is not documented.
func (v *visit) wantKind(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, sqllock.ErrNotAcquired) && !errors.Is(err, sqllock.ErrDatabase) {
		v.fatal("acquire "+v.key, err)
	}
}

// tell tells the parent that the key can be acquired.
func (v *visit) tell() {
	v.out.Lock()
	defer v.out.Unlock()
	fmt.Println("acquired", v.key)
}

// watch notes how long the lease is certainly alive. The function that it returns ends that.
func (v *visit) watch() func() {
	done := make(chan struct{})
	var all sync.WaitGroup
	ctx := v.lease.Context()
	all.Go(func() {
		looks := time.NewTicker(2 * time.Millisecond)
		defer looks.Stop()
		var last, noted int64
		for {
			// The context was alive at "at" if it is alive after it.
			at := history.Now()
			if ctx.Err() != nil {
				break
			}
			if last = at; noted == 0 || at-noted > int64(100*time.Millisecond) {
				v.note(at)
				noted = at
			}
			select {
			case <-looks.C:
				continue
			case <-done:
			}
			break
		}
		if last > noted {
			v.note(last)
		}
	})
	return func() { close(done); all.Wait() }
}

// note notes that the lease was alive.
func (v *visit) note(at int64) {
	v.log.Add(history.Event{Op: history.Alive, Key: v.key, Lease: v.id, From: at, To: at})
}

// hold works under the lease for some time, which may be longer than it lasts.
func (v *visit) hold(ctx context.Context) {
	if v.Config.Outlive {
		v.guarded(ctx, time.Duration(v.r.IntN(int(2*v.Config.TTL))))
		return
	}
	until := time.Now().Add(v.length())
	for time.Now().Before(until) && ctx.Err() == nil && v.lease.Context().Err() == nil {
		switch n := v.r.IntN(20); {
		case n < 8:
			v.guarded(ctx, 0)
		case n == 8:
			v.guarded(ctx, time.Duration(v.r.IntN(int(v.Config.TTL*3/2)))) // it may outlive the lease
		case n < 12:
			v.unguarded(ctx)
		case n < 14:
			v.renew(ctx)
		}
		pause(ctx, time.Duration(20+v.r.IntN(200))*time.Millisecond)
	}
}

// length is short more often than not.
func (v *visit) length() time.Duration {
	switch v.r.IntN(10) {
	case 0:
		return time.Duration(v.r.IntN(int(2 * v.Config.TTL)))
	case 1, 2, 3:
		return time.Duration(v.r.IntN(int(v.Config.TTL)))
	default:
		return time.Duration(v.r.IntN(int(v.Config.TTL / 6)))
	}
}

func (v *visit) renew(ctx context.Context) {
	e := history.Event{Op: history.Renew, Key: v.key, Lease: v.id, From: history.Now()}
	err := v.lease.Renew(ctx)
	v.add(e, err)
}

func (v *visit) release(ctx context.Context) {
	e := history.Event{Op: history.Release, Key: v.key, Lease: v.id, From: history.Now()}
	err := v.lease.Unlock(ctx)
	v.add(e, err)
}

// add notes an event that ends now.
func (v *visit) add(e history.Event, err error) {
	e.To = history.Now()
	if err != nil {
		e.Err, e.Lost = err.Error(), errors.Is(err, sqllock.ErrLockLost)
	}
	v.log.Add(e)
}
