package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// long is more than any wait may last that the lock limits, and far less than a test.
const long = ttl

// stream has callers of a process hold a lock for d, again and again, from different times on. The
// function that it returns ends the stream.
func (f *fixture) stream(callers int, d time.Duration, lock method) (end func()) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for time.Sleep(time.Duration(i) * d / time.Duration(callers)); ctx.Err() == nil; {
				lease, err := lock(ctx)
				if errors.Is(err, context.Canceled) {
					return
				}
				if err != nil {
					f.Error(err)
					return
				}
				time.Sleep(d)
				f.Unlock(lease) //nolint:contextcheck // ctx may have ended
			}
		})
	}
	time.Sleep(2 * d)
	return func() {
		cancel()
		all.Wait()
	}
}

// TestReadersDoNotStarveAWriter has readers of two processes come so that one is always in.
func TestReadersDoNotStarveAWriter(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		endOne := f.stream(3, 50*time.Millisecond, p.rw.RLock)
		endTwo := f.stream(3, 70*time.Millisecond, other.rw.RLock)
		for range 3 {
			time.Sleep(500 * time.Millisecond)
			if holders, err := p.rw.Readers(f.Context()); len(holders) == 0 || err != nil {
				f.Fatal("there are no readers", err)
			}
			f.Unlock(check.Value(f.process().rw.TryLockFor(f.Context(), long))(f))
		}
		f.both(endOne, endTwo)
		p.rows(0)
	})
}

// both calls two functions at the same time.
func (f *fixture) both(one, two func()) {
	var all sync.WaitGroup
	all.Go(one)
	all.Go(two)
	all.Wait()
}

// TestWritersDoNotStarveAReader has writers of two processes come so that one is always in.
func TestWritersDoNotStarveAReader(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		endOne := f.streamOfWriters(p)
		endTwo := f.streamOfWriters(other)
		for range 3 {
			time.Sleep(500 * time.Millisecond)
			f.awaitHolder(p, turn)
			lease := check.Value(f.process().rw.TryRLockFor(f.Context(), 10*long))(f) // the turn has no order between processes
			f.Unlock(lease)
		}
		f.both(endOne, endTwo)
		p.rows(0)
	})
}

// awaitHolder waits until a row is held, which is free for a moment between two holders.
func (f *fixture) awaitHolder(p *process, key string) {
	f.Helper()
	for range 1000 {
		_, held, err := p.repository.Peek(f.Context(), key)
		f.Must(err)
		if held {
			return
		}
		time.Sleep(time.Millisecond)
	}
	f.Fatalf("%q has no holder for a second", key)
}

func (f *fixture) streamOfWriters(p *process) (end func()) {
	f.Helper()
	return f.stream(3, 50*time.Millisecond, p.rw.Lock)
}

// TestAReaderGetsItsTurn has a writer come after a reader that waits: the reader is next.
func TestAReaderGetsItsTurn(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		writer := f.get(p.rw.Lock)
		reading := f.start(f.Context(), other.rw.RLock)
		waiter := f.holderOf(p, turn)
		writing := f.start(f.Context(), p.rw.Lock)
		f.Unlock(writer)
		f.refused(p.rw.TryLock, waiter)
		reader := f.gets(reading)
		f.waits(writing)
		f.Unlock(reader)
		f.Unlock(f.gets(writing))
		p.rows(0)
	})
}

// TestAWriterKeepsNewReadersOut has a reader come after a writer that waits for another reader. The
// rows of readers that come later do not delay the writer.
func TestAWriterKeepsNewReadersOut(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		reader := f.seatedAt(p, 9)
		writing := f.start(f.Context(), other.rw.Lock)
		f.refused(p.rw.TryRLock, f.holderOf(p, key))
		reading := f.start(f.Context(), p.rw.RLock)
		f.waits(reading)
		p.crashed(lockKey+" reader 3", time.Hour)     // it was about to read the writer's row
		other.crashed(lockKey+" reader 5", time.Hour) // as well
		f.Unlock(reader)
		began := time.Now()
		writer := f.gets(writing)
		f.Takes("the writer's wait", began, 0, time.Second)
		f.waits(reading)
		f.Unlock(writer)
		f.Unlock(f.gets(reading))
		p.rows(2)
	})
}

// seatedAt returns a plain lease of a reader's row.
func (f *fixture) seatedAt(p *process, seat int) *sqllock.Lease {
	f.Helper()
	return check.Value(p.registry.TryLock(f.Context(), fmt.Sprintf("%s reader %d", lockKey, seat)))(f)
}

// TestTheLimitOfAWait has waits end that are limited, in whatever they wait for.
func TestTheLimitOfAWait(t *testing.T) {
	t.Parallel()
	const wait = 3 * time.Second
	for name, hold := range map[string]func(f *fixture, p *process) (holder string){
		"a writer":    func(f *fixture, p *process) string { return f.get(p.rw.WithTTL(time.Minute).Lock).Holder() },
		"its turn":    func(_ *fixture, p *process) string { return p.crashed(turn, time.Minute) },
		"a plain one": func(_ *fixture, p *process) string { return p.crashed(key, time.Minute) },
		"a reader":    func(f *fixture, p *process) string { return f.get(p.rw.WithTTL(time.Minute).RLock).Holder() },
	} {
		runInBubble(t, name, func(f *fixture) {
			p, other := f.process(), f.process()
			holder := hold(f, other)
			for _, limited := range []func(context.Context, time.Duration) (*sqllock.Lease, error){p.rw.TryLockFor, p.rw.TryRLockFor} {
				began := time.Now()
				lease, err := limited(f.Context(), wait)
				if lease != nil { // a reader beside a reader, or when no writer is there
					f.Unlock(lease)
					continue
				}
				var held *sqllock.HeldError
				if !errors.As(err, &held) || held.Key != key || held.Holder != holder {
					f.Errorf("%v, want one held by %s", err, holder)
				}
				if d := time.Since(began); d < wait || d > wait+200*time.Millisecond || errors.Is(err, context.DeadlineExceeded) {
					f.Errorf("%v after %v", err, d)
				}
				ctx, cancel := context.WithTimeout(f.Context(), wait)
				_, err = limited(ctx, time.Hour)
				cancel()
				f.Is(err, sqllock.ErrNotAcquired, context.DeadlineExceeded)
			}
			f.Must(other.repository.ReleaseAll(f.Context()))
			f.Unlock(f.get(p.rw.TryLock))
			p.rows(0)
		})
	}
}

// TestAllSeatsAreTaken has as many readers as there can be, in two processes.
func TestAllSeatsAreTaken(t *testing.T) {
	check.Long(t)
	inBubble(t, func(f *fixture) {
		processes := []*process{f.rarePoller(), f.rarePoller()}
		var leases []*sqllock.Lease
		for i := range rwlock.MaxReaders {
			leases = append(leases, f.get(processes[i%2].rw.WithTTL(time.Hour+time.Duration(i)*time.Second).TryRLock))
		}
		p := processes[0]
		p.rows(rwlock.MaxReaders)
		f.refused(p.rw.TryRLock, leases[0].Holder()) // it ends first
		f.Unlock(f.get(in(leases[7], processes[1].rw.TryRLock)))
		reading := f.start(f.Context(), p.rw.RLock)
		f.waits(reading)
		f.Unlock(leases[1])
		leases[1] = f.gets(reading)
		p.rows(rwlock.MaxReaders)
		for _, lease := range leases {
			f.Unlock(lease)
		}
		f.Unlock(f.get(p.rw.TryLock))
		p.rows(0)
	})
}

// TestACrashInItsTurn has others wait until the row of the turn, and of a writer, have expired.
func TestACrashInItsTurn(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func(p *process) method{
		"reader": func(p *process) method { return p.rw.RLock },
		"writer": func(p *process) method { return p.rw.Lock },
	} {
		runInBubble(t, name, func(f *fixture) {
			p := f.process()
			p.crashed(turn, 5*time.Second)
			p.crashed(key, 7*time.Second)
			began := time.Now()
			f.Unlock(f.get(lock(p)))
			f.Takes("the wait", began, 7*time.Second, 8*time.Second)
		})
	}
}

// TestTheLeaseOutlivesTheWait has a writer without automatic renewal wait for a reader for many of its
// times-to-live. It holds its row all the time, and gets a whole lease.
func TestTheLeaseOutlivesTheWait(t *testing.T) {
	t.Parallel()
	for _, short := range []time.Duration{sqllock.MinTTL, 200 * time.Millisecond, 2 * time.Second} {
		runInBubble(t, short.String(), func(f *fixture) {
			p, other := f.process(), f.process()
			reader := f.get(other.rw.WithTTL(time.Hour).RLock)
			began := time.Now()
			writing := make(chan outcome, 1)
			go func() {
				lease, err := p.rw.WithTTL(short).WithAutoRenew(false).Lock(f.Context())
				// A whole lease ends a margin before its row, and no virtual time has passed.
				if left, whole := time.Until(lease.Deadline()), short-max(short/10, 2*time.Millisecond); left < whole {
					f.Errorf("%v left of %v", left, whole)
				}
				writing <- outcome{lease, err}
			}()
			time.Sleep(short / 2)
			holder := f.holderOf(p, key)
			for time.Since(began) < 7*short/2 {
				time.Sleep(short / 20)
				f.refused(other.rw.TryRLock, holder)
			}
			f.Unlock(reader)
			lease := f.gets(writing)
			check.Equal(f, "holder of the row", lease.Holder(), holder)
			f.Unlock(lease)
			p.rows(0)
		})
	}
}

// TestAWriterThatLosesItsRowGoesOn has the row of a writer deleted, and that of the turn, while it waits.
func TestAWriterThatLosesItsRowGoesOn(t *testing.T) {
	check.Long(t)
	inBubble(t, func(f *fixture) {
		p, other := f.rarePoller(), f.process()
		reader := f.get(other.rw.WithTTL(time.Hour).RLock)
		writing := f.start(f.Context(), p.rw.Lock)
		for range 3 {
			before := f.holderOf(p, key)
			f.Must(p.repository.ReleaseAll(f.Context()))
			time.Sleep(2 * ttl)
			if f.holderOf(p, key) == before {
				f.Error("it has not noticed")
			}
		}
		f.Unlock(reader)
		lease := f.gets(writing)
		f.Must(lease.Renew(f.Context()))
		f.Unlock(lease)
		p.rows(0)
	})
}

// TestMaxHoldCountsTheWait has a writer wait for a reader for longer than its lease may be renewed
// automatically. It has a whole lease all the same.
func TestMaxHoldCountsTheWait(t *testing.T) {
	check.Long(t)
	inBubble(t, func(f *fixture) {
		const maxHold = 2 * ttl
		p := f.processWith(sqllock.RegistryOptions{TTL: ttl, MaxHold: maxHold, IdleBetweenTries: time.Second})
		reader := f.get(f.process().rw.WithAutoRenew(true).RLock)
		writing := f.start(f.Context(), p.rw.Lock)
		time.Sleep(2 * maxHold)
		f.waits(writing)
		f.Unlock(reader)
		writer, got := f.gets(writing), time.Now()
		<-writer.Context().Done()
		f.Takes("the lease", got, ttl-time.Second, ttl)
		f.Is(context.Cause(writer.Context()), sqllock.ErrLockLost)
		f.Is(writer.Unlock(f.Context()), sqllock.ErrLockLost)
	})
}

// TestAWriterWaitsForAReaderThatMeetsIt has a reader acquire after the writer has found no reader, and
// before the writer has its row. Lock waits until the reader has left; it does not return ErrNotAcquired.
func TestAWriterWaitsForAReaderThatMeetsIt(t *testing.T) {
	inBubble(t, func(f *fixture) {
		readers := f.process()
		var met *sqllock.Lease
		writers := f.processWith(sqllock.RegistryOptions{TTL: ttl, Observers: []*observe.Observer{{
			Acquire: func(ctx context.Context, e observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
				if e.Key == key && met == nil {
					met = check.Value(readers.rw.RLock(ctx))(f)
					time.AfterFunc(time.Second, func() { f.Must(met.Unlock(f.Context())) })
				}
				return nil, nil
			},
		}}, NoRenew: true})
		began := time.Now()
		lease := f.get(writers.rw.Lock)
		if waited := time.Since(began); waited < time.Second {
			f.Errorf("the writer came in after %v, beside a reader", waited)
		}
		f.Unlock(lease)
	})
}
