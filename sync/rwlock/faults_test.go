package rwlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// errGone is what the driver says when the database has gone.
var errGone = errors.New("connection reset by peer")

// mostOps is more operations than any call needs.
const mostOps = 400

func rlock(p *process) method { return p.rw.RLock }
func wlock(p *process) method { return p.rw.Lock }

// TestALimitInAnOutage has the limit of a wait for the turn end while the database fails: that is no taken lock.
func TestALimitInAnOutage(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p := f.processWith(sqllock.RegistryOptions{TTL: ttl, WaitThroughOutages: true, NoRenew: true})
		for _, row := range []string{turn, key} {
			p.crashed(row, time.Hour)
		}
		writing := f.start(f.Context(), func(ctx context.Context) (*sqllock.Lease, error) {
			return p.rw.TryLockFor(ctx, 5*time.Second)
		})
		p.network.Follow(func(context.Context, flaky.Moment) error { return errGone })
		err := (<-writing).err
		f.Is(err, sqllock.ErrDatabase, errGone)
		check.IsNot(f, err, sqllock.ErrNotAcquired, context.DeadlineExceeded)
		p.network.Follow(nil)
		f.Must(p.repository.ReleaseAll(f.Context()))
	})
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
			p := f.processWith(sqllock.RegistryOptions{TTL: ttl, WaitThroughOutages: true, NoRenew: true})
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
		f.Takes("the last call", began, 0, 30*time.Second)
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
			f.Takes("the last call after Close", closed, 0, time.Second)
			for _, lock := range []method{p.rw.Lock, p.rw.TryLock, p.rw.RLock, p.rw.TryRLock} {
				f.Is(check.ErrorOf(lock(f.Context())), sqllock.ErrClosed)
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
		f.Takes("the call after Close", closed, 0, time.Second)
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
