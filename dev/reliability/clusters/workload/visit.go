//go:build linux

package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// A visit is one call that locks, and what is done under the lease.
type visit struct {
	*worker
	r       *rand.Rand
	way     Way
	renewed bool // by AutoRenew

	lock  locker
	lease *sqllock.Lease
	id    string // of the lease
	holds []history.Hold
}

// do returns false if the lock was not acquired.
func (v *visit) do(ctx context.Context) bool {
	if !v.acquire(ctx) {
		return false
	}
	v.stay(ctx)
	if lock, ok := v.lock.(*rwlock.Lock); ok && v.r.IntN(3) == 0 && v.downgrade(ctx, lock) {
		v.stay(ctx)
	}
	// A leader cannot leave its lease to itself.
	if _, ok := v.lock.(*term); ok || v.lease.Context().Err() == nil {
		v.release(ctx)
	}
	return true
}

// stay holds the lock until it is to be released, or until its lease has ended.
func (v *visit) stay(ctx context.Context) {
	ended := v.watch() //nolint:contextcheck // the lease's own context is watched
	defer ended()      // a caller that unlocks holds the lock no longer, although the context ends a little later
	v.hold(ctx)
	if !v.renewed && !v.Config.Hasty && v.r.IntN(6) == 0 {
		<-v.lease.Context().Done()
	}
}

// downgrade returns false if the write lock is still held. Otherwise no writer comes in between, so the
// read lock is held from the last instant of the write lock on.
func (v *visit) downgrade(ctx context.Context, lock *rwlock.Lock) bool {
	e := history.Event{Op: history.Release, Lease: v.id, From: history.Now()}
	lease, err := lock.Downgrade(ctx, v.lease)
	v.add(e, err)
	if err != nil {
		return false
	}
	v.lease = lease
	v.holdsNow(history.Event{Op: history.Acquire, From: e.From, To: e.From}, reading(lock))
	return true
}

func (v *visit) acquire(ctx context.Context) bool {
	v.lock = v.way.lock(v.renewed)
	tries, hasTries := v.lock.(trier)
	e := history.Event{Op: history.Acquire, From: history.Now()}
	var err error
	switch n := v.r.IntN(3); {
	case hasTries && n == 0:
		v.lease, err = tries.TryLock(ctx)
	case hasTries && n == 1:
		v.lease, err = tries.TryLockFor(ctx, time.Duration(1+v.r.IntN(3000))*time.Millisecond)
	default:
		v.lease, err = v.wait(ctx, 20*time.Second)
	}
	e.To = history.Now()
	if err != nil {
		e.ID, e.Err = fmt.Sprintf("%d.%d.", v.Process, v.Life), err.Error()
		v.log.Add(e)
		v.wantKind(ctx, err)
		return false
	}
	v.holdsNow(e, v.way)
	v.tell()
	return true
}

// holdsNow notes what is acquired with the lease.
func (v *visit) holdsNow(e history.Event, way Way) {
	v.id = fmt.Sprintf("%d.%d.%d", v.Process, v.Life, v.leases.Add(1))
	v.holds = way.holds(v.lease)
	e.Kind, e.Lease, e.Token, e.Holds = way.Kind, v.id, v.lease.Token(), v.holds
	v.log.Add(e)
}

// wait locks with a limit of which the lease knows nothing: its context must not end with that of the
// wait.
func (v *visit) wait(ctx context.Context, limit time.Duration) (*sqllock.Lease, error) {
	waiting, cancel := context.WithCancelCause(ctx)
	stop := time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
	defer stop.Stop()
	return v.lock.Lock(waiting)
}

// wantKind notes an error of a kind that is not documented.
func (v *visit) wantKind(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, sqllock.ErrNotAcquired) && !errors.Is(err, sqllock.ErrDatabase) {
		v.fatal("acquire: "+v.way.Kind, err)
	}
}

// tell tells the parent that the lock can be acquired.
func (v *visit) tell() {
	v.out.Lock()
	defer v.out.Unlock()
	fmt.Println("acquired", strings.Join(v.way.Names, ","))
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
	v.log.Add(history.Event{Op: history.Alive, Lease: v.id, From: at, To: at})
}

// hold works under the lease for some time, which may be longer than it lasts.
func (v *visit) hold(ctx context.Context) {
	if v.Config.Outlive {
		v.write(ctx, true, time.Duration(v.r.IntN(int(2*v.Config.TTL))))
		return
	}
	if v.Config.Hasty {
		if v.r.IntN(4) == 0 {
			v.write(ctx, true, 0)
		}
		pause(ctx, time.Duration(v.r.IntN(10))*time.Millisecond)
		return
	}
	until := time.Now().Add(v.length())
	for time.Now().Before(until) && ctx.Err() == nil && v.lease.Context().Err() == nil {
		switch n := v.r.IntN(20); {
		case n < 8:
			v.write(ctx, true, 0)
		case n == 8:
			v.write(ctx, true, time.Duration(v.r.IntN(int(v.Config.MaxHold*3/4)))) // it may outlive the lease
		case n < 12:
			v.write(ctx, false, 0)
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
		return time.Duration(v.r.IntN(int(v.Config.Stay)))
	case 1, 2, 3:
		return time.Duration(v.r.IntN(int(v.Config.Stay / 2)))
	default:
		return time.Duration(v.r.IntN(int(v.Config.Stay / 12)))
	}
}

func (v *visit) renew(ctx context.Context) {
	e := history.Event{Op: history.Renew, Lease: v.id, From: history.Now()}
	err := v.lease.Renew(ctx)
	v.add(e, err)
}

func (v *visit) release(ctx context.Context) {
	e := history.Event{Op: history.Release, Lease: v.id, From: history.Now()}
	v.add(e, release(ctx, v.lock, v.lease))
}

// add notes an event that ends now.
func (v *visit) add(e history.Event, err error) {
	e.To = history.Now()
	if err != nil {
		e.Err = err.Error()
	}
	v.log.Add(e)
}
