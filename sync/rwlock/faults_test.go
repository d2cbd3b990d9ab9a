package rwlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/observe"
)

// errGone is what the driver says when the database has gone.
var errGone = errors.New("connection reset by peer")

// mostOps is more operations than any action needs. A loop that spins exceeds it.
const mostOps = 400

// An action is a call that locks, in a state.
type action struct {
	prepare func(p *process) // another process, which has the lock for a while, say
	do      func(ctx context.Context, p *process) (*sqllock.Lease, error)
}

func free(*process) {}

// held has another client hold a row for as long as a waiter polls a few times.
func held(rowKey string) func(p *process) {
	return func(p *process) { p.crashed(rowKey, 50*time.Millisecond) }
}

// inside returns what calls a method inside a lease of another. The lease of the outer one is unlocked
// at the end.
func inside(outer, inner func(p *process) method) func(context.Context, *process) (*sqllock.Lease, error) {
	return func(ctx context.Context, p *process) (*sqllock.Lease, error) {
		lease, err := outer(p)(ctx)
		if err != nil {
			return nil, err
		}
		defer unlockIfItPanics(ctx, lease)
		within, err := inner(p)(lease.Context()) //nolint:contextcheck // it is made from ctx
		if err != nil {
			return lease, err
		}
		_ = within.Unlock(ctx)
		return lease, nil
	}
}

func rlock(p *process) method { return p.rw.RLock }
func wlock(p *process) method { return p.rw.Lock }

func calls(lock func(p *process) method) func(context.Context, *process) (*sqllock.Lease, error) {
	return func(ctx context.Context, p *process) (*sqllock.Lease, error) { return lock(p)(ctx) }
}

var actions = map[string]action{
	"RLock":                 {free, calls(rlock)},
	"RLock beside a writer": {held(key), calls(rlock)},
	"RLock beside a turn":   {held(turn), calls(rlock)},
	"RLock inside RLock":    {free, inside(rlock, rlock)},
	"RLock inside Lock":     {free, inside(wlock, rlock)},
	"Lock":                  {free, calls(wlock)},
	"Lock beside a writer":  {held(key), calls(wlock)},
	"Lock beside a reader":  {held(lockKey + " reader 77"), calls(wlock)},
	"Lock beside a turn":    {held(turn), calls(wlock)},
	"Lock inside Lock":      {free, inside(wlock, wlock)},
	"Lock inside a plain lock": {held(lockKey + " reader 77"), inside(func(p *process) method {
		return func(ctx context.Context) (*sqllock.Lease, error) { return p.registry.Lock(ctx, key) }
	}, wlock)},
	"Downgrade": {free, func(ctx context.Context, p *process) (*sqllock.Lease, error) {
		lease, err := p.rw.Lock(ctx)
		if err != nil {
			return nil, err
		}
		defer unlockIfItPanics(ctx, lease)
		reader, err := p.rw.Downgrade(ctx, lease)
		if err != nil {
			return lease, err
		}
		return reader, nil
	}},
}

// unlockIfItPanics is deferred by an action that has a lease.
func unlockIfItPanics(ctx context.Context, lease *sqllock.Lease) {
	if r := recover(); r != nil {
		_ = lease.Unlock(ctx)
		panic(r)
	}
}

// everyMoment runs a test for every action and moment, up to the first one that is not reached. These
// are hundreds, so not with -short.
func everyMoment(t *testing.T, test func(f *fixture, p *process, a action, n int, done bool) (reached bool)) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED with -short: hundreds of moments")
	}
	for name, a := range actions {
		runInBubble(t, name, func(f *fixture) {
			p := f.process()
			reached := true
			for n := 1; n <= 40 && reached; n++ {
				for _, done := range []bool{false, true} {
					f.Logf("operation %d, done: %v", n, done)
					a.prepare(p)
					reached = test(f, p, a, n, done)
					if n == 1 && !reached {
						f.Error("the action sent nothing, or the test had no effect")
					}
					time.Sleep(2 * ttl) // until what was left behind has expired
					p.rows(0)
				}
			}
		})
	}
}

// TestAFaultAtEveryMoment has the database fail once, before or after each operation.
func TestAFaultAtEveryMoment(t *testing.T) {
	t.Parallel()
	everyMoment(t, func(f *fixture, p *process, a action, n int, done bool) bool {
		failed := false
		p.network.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.N == n && m.Done == done {
				failed = true
				return errGone
			}
			return nil
		})
		lease, err := a.do(f.Context(), p)
		f.settle(p, lease)
		if !failed && err != nil {
			f.Errorf("%v without a fault", err)
		}
		if err != nil {
			f.Is(err, sqllock.ErrDatabase, errGone)
		}
		return failed
	})
}

// TestACancellationAtEveryMoment has the caller's context end before or after each operation. Nothing is
// left behind.
func TestACancellationAtEveryMoment(t *testing.T) {
	t.Parallel()
	errStop := errors.New("stop")
	everyMoment(t, func(f *fixture, p *process, a action, n int, done bool) bool {
		ctx, cancel := context.WithCancelCause(f.Context())
		defer cancel(nil)
		p.network.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.N == n && m.Done == done {
				cancel(errStop)
			}
			return nil
		})
		lease, err := a.do(ctx, p)
		f.settle(p, lease)
		if err != nil {
			f.Is(err, sqllock.ErrNotAcquired, context.Canceled)
		}
		time.Sleep(time.Second) // until the rows of prepare have expired
		p.rows(0)
		return ctx.Err() != nil
	})
}

// settle unlocks what an action has returned, and checks that it has not spun.
func (f *fixture) settle(p *process, lease *sqllock.Lease) {
	f.Helper()
	if n := p.network.Count(); n > mostOps {
		f.Errorf("%d operations", n)
	}
	p.network.Follow(nil)
	if lease != nil {
		_ = lease.Unlock(f.Context()) // a fault may have ended it
	}
	if held := p.registry.Held(); len(held) > 0 {
		f.Errorf("it still holds %+v", held)
	}
}

// TestAnOutage has the database fail until the caller has its error.
func TestAnOutage(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p := f.process()
		p.network.Follow(func(context.Context, flaky.Moment) error { return errGone })
		for _, lock := range []method{p.rw.RLock, p.rw.TryRLock, p.rw.Lock, p.rw.TryLock} {
			_, err := lock(f.Context())
			f.Is(err, sqllock.ErrDatabase, errGone)
		}
		_, err := p.rw.Readers(f.Context())
		f.Is(err, sqllock.ErrDatabase, errGone)
		p.network.Follow(nil)
		f.Unlock(f.get(p.rw.Lock))
	})
}

// TestAnObserverThatPanics has an observer panic at each event of a call. The caller does not get a lease
// then, so none may be left.
func TestAnObserverThatPanics(t *testing.T) {
	t.Parallel()
	for name, a := range actions {
		runInBubble(t, name, func(f *fixture) {
			var left atomic.Int64 // until the event at which it panics
			event := func() {
				if left.Add(-1) == 0 {
					panic(errGone)
				}
			}
			p := f.processWith(sqllock.RegistryOptions{TTL: ttl, AutoRenew: true, Observers: []*observe.Observer{{
				Acquire: func(ctx context.Context, _ observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
					event()
					return ctx, func(observe.AcquireEnd) { event() }
				},
				LeaseEnd: func(context.Context, observe.LeaseEnd) { event() },
			}}})
			for n, panicked := int64(1), true; panicked; n++ {
				a.prepare(p)
				left.Store(n)
				panicked = f.panics(func() {
					lease, err := a.do(f.Context(), p)
					f.Must(err)
					f.Must(lease.Unlock(f.Context()))
				})
				left.Store(0)
				if held := p.registry.Held(); len(held) > 0 {
					f.Fatalf("after a panic at event %d it holds %+v", n, held)
				}
				time.Sleep(time.Second) // until the rows of prepare have expired
			}
			p.rows(0)
		})
	}
}

// TestALimitInAnOutage has the limit of a wait for the turn end while the database fails.
func TestALimitInAnOutage(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p := f.processWith(sqllock.RegistryOptions{TTL: ttl, WaitThroughOutages: true})
		for _, row := range []string{turn, key} {
			p.crashed(row, time.Hour)
		}
		writing := f.start(f.Context(), func(ctx context.Context) (*sqllock.Lease, error) {
			return p.rw.TryLockFor(ctx, 5*time.Second)
		})
		p.network.Follow(func(context.Context, flaky.Moment) error { return errGone })
		f.Is((<-writing).err, sqllock.ErrNotAcquired)
		p.network.Follow(nil)
		f.Must(p.repository.ReleaseAll(f.Context()))
	})
}

// panics reports whether fn panics with errGone.
func (f *fixture) panics(fn func()) (panicked bool) {
	f.Helper()
	defer func() {
		if r := recover(); r != nil {
			if r != errGone { //nolint:errorlint // the very value
				panic(r)
			}
			panicked = true
		}
	}()
	fn()
	return false
}

// TestWhatWaitsThroughAnOutage has the database fail for a while, in a registry that waits through outages.
func TestWhatWaitsThroughAnOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows []string // that another process has
		lock func(p *process) method
		ends bool // the error ends the wait
	}{
		"a turn, to write":   {[]string{turn}, wlock, false},
		"a writer, to write": {[]string{key}, wlock, false},
		"a reader, to write": {[]string{lockKey + " reader 7"}, wlock, true},
		"a writer, to read":  {[]string{key}, rlock, true},
		"a turn, to read":    {[]string{key, turn}, rlock, false},
	} {
		runInBubble(t, name, func(f *fixture) {
			p := f.processWith(sqllock.RegistryOptions{TTL: ttl, WaitThroughOutages: true})
			for _, row := range c.rows {
				p.crashed(row, 20*time.Second)
			}
			waiting := f.start(f.Context(), c.lock(p))
			p.network.Follow(func(context.Context, flaky.Moment) error { return errGone })
			time.Sleep(5 * time.Second)
			p.network.Follow(nil)
			if c.ends {
				f.Is((<-waiting).err, sqllock.ErrDatabase, errGone)
				return
			}
			f.Unlock(f.gets(waiting))
		})
	}
}

// TestWaitersShareAnOutage has many callers wait when the database answers no more. They do not find that
// out one after the other.
func TestWaitersShareAnOutage(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p := f.process()
		p.crashed(key, time.Hour)
		var waiting []<-chan outcome
		for range 20 {
			waiting = append(waiting, f.start(f.Context(), p.rw.Lock), f.start(f.Context(), p.rw.RLock))
		}
		began := time.Now()
		p.network.Follow(func(ctx context.Context, _ flaky.Moment) error {
			<-ctx.Done()
			return ctx.Err()
		})
		for _, result := range waiting {
			f.Is((<-result).err, sqllock.ErrDatabase)
		}
		if d := time.Since(began); d > 30*time.Second {
			f.Errorf("the last one returned after %v", d)
		}
		p.network.Follow(nil)
		f.Must(p.repository.ReleaseAll(f.Context()))
		f.Unlock(f.get(p.rw.Lock)) // the outage is over for those that come later
		p.rows(0)
	})
}

// TestCloseEndsEverything has the registry be closed while callers hold, and wait for everything that
// there is to be waited for.
func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]struct {
		rows map[string]bool // the keys that other processes have
		left int             // how many of them are left
	}{
		"a writer":          {map[string]bool{key: true}, 1},
		"a reader":          {map[string]bool{lockKey + " reader 1": true}, 1},
		"a turn":            {map[string]bool{turn: true}, 1},
		"a writer's turn":   {map[string]bool{turn: true, key: true}, 2},
		"nothing but a row": {map[string]bool{"another": true}, 1},
	} {
		runInBubble(t, name, func(f *fixture) {
			p, other := f.process(), f.process()
			for row := range state.rows {
				other.crashed(row, time.Hour)
			}
			var waiting []<-chan outcome
			for range 2 {
				waiting = append(waiting, f.start(f.Context(), p.rw.Lock), f.start(f.Context(), p.rw.RLock))
			}
			f.Must(p.registry.Close(f.Context()))
			closed := time.Now()
			for _, result := range waiting {
				o := <-result
				if o.lease != nil { // it was acquired before
					f.Is(context.Cause(o.lease.Context()), sqllock.ErrClosed)
					continue
				}
				f.Is(o.err, sqllock.ErrClosed)
			}
			if d := time.Since(closed); d > time.Second {
				f.Errorf("the last one returned %v after Close", d)
			}
			for _, lock := range []method{p.rw.Lock, p.rw.TryLock, p.rw.RLock, p.rw.TryRLock} {
				_, err := lock(f.Context())
				f.Is(err, sqllock.ErrClosed)
			}
			other.rows(state.left)
		})
	}
}

// TestCloseEndsAnUpgrade has the registry be closed while the holder of a plain lock waits for a reader,
// which it does out of turn.
func TestCloseEndsAnUpgrade(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		other.crashed(lockKey+" reader 1", time.Hour)
		plain, err := p.registry.Lock(f.Context(), key)
		f.Must(err)
		// A context of a lease ends with the registry. This one carries the lease all the same.
		writing := f.start(context.WithoutCancel(plain.Context()), p.rw.Lock)
		f.Must(p.registry.Close(f.Context()))
		closed := time.Now()
		f.Is((<-writing).err, sqllock.ErrClosed)
		if d := time.Since(closed); d > time.Second {
			f.Errorf("it returned %v after Close", d)
		}
		other.rows(1)
	})
}

// TestARowThatIsTakenOverIsLost has all rows deleted once, while callers take over what a crashed process has
// left. They must not hear that they have lost a lock, since they had none.
func TestARowThatIsTakenOverIsLost(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func(p *process) method{
		"TryRLock": func(p *process) method { return p.rw.TryRLock }, "TryLock": func(p *process) method { return p.rw.TryLock },
		"RLock": rlock, "Lock": wlock,
	} {
		runInBubble(t, name, func(f *fixture) {
			p, other := f.process(), f.process()
			for n, reached := 1, true; reached && n < mostOps; n++ {
				f.get(other.rw.WithTTL(time.Second).RLock)
				time.Sleep(2 * time.Second)
				other.crashed(key, 50*time.Millisecond)
				time.Sleep(time.Second)
				inside := false
				reached = false
				p.network.Follow(func(ctx context.Context, m flaky.Moment) error {
					switch {
					case m.Op == flaky.Begin && m.Done:
						inside = true
					case m.Op == flaky.Commit || m.Op == flaky.Rollback:
						inside = !m.Done
					}
					if m.N != n || m.Done || inside { // in a transaction no other can write
						reached = reached || m.N >= n
						return nil
					}
					reached = true
					_, err := f.DB.DB.ExecContext(ctx, "DELETE FROM INT_LOCK")
					return err
				})
				lease, err := lock(p)(f.Context())
				p.network.Follow(nil)
				if errors.Is(err, sqllock.ErrLockLost) {
					f.Errorf("operation %d: %v", n, err)
				}
				if err == nil {
					_ = lease.Unlock(f.Context())
				}
				time.Sleep(2 * ttl)
			}
		})
	}
}
