package rwlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// lockOf returns the lock of another key.
func (f *fixture) lockOf(p *process, key string) *rwlock.Lock {
	f.Helper()
	return check.Value(rwlock.New(p.registry, key))(f)
}

// in returns a method that is called with the context of a lease.
func in(lease *sqllock.Lease, lock method) method {
	return func(context.Context) (*sqllock.Lease, error) { return lock(lease.Context()) } //nolint:contextcheck // that is its purpose
}

// TestAReaderEntersAgain has a reader lock once more while a writer waits for it.
func TestAReaderEntersAgain(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		outer := f.get(p.rw.RLock)
		writing := f.start(f.Context(), other.rw.Lock)
		inner := f.get(in(outer, f.lockOf(p, key).TryRLock)) // through another Lock of the key
		check.Equal(f, "holder of the reader's row", inner.Holder(), outer.Holder())
		f.refused(p.rw.TryRLock, f.holderOf(p, key)) // any other context waits
		f.Unlock(outer)
		f.waits(writing) // for the inner one
		f.Unlock(inner)
		f.Unlock(f.gets(writing))
		p.rows(0)
	})
}

// TestAReaderEntersAJointLease has a reader lock inside a joint lease that has a reader's row, whose Key is
// not that of the row.
func TestAReaderEntersAJointLease(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		joint := check.Value(p.registry.ObtainAll("another", lockKey+" reader 7"))(f)
		outer := f.get(joint.Lock)
		inner := f.get(in(outer, p.rw.RLock))
		f.Unlock(outer)
		f.refused(other.rw.TryLock, inner.Holder())
		f.Unlock(inner)
		p.rows(0)
	})
}

// holderOf returns the holder of a row.
func (f *fixture) holderOf(p *process, key string) string {
	f.Helper()
	row, ok, err := p.repository.Peek(f.Context(), key)
	f.Must(err)
	if !ok {
		f.Fatalf("%q is free", key)
	}
	return row.Holder
}

// TestAReaderInsideAWriter has a writer read, and write inside that.
func TestAReaderInsideAWriter(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		writer := f.get(p.rw.Lock)
		reader := f.get(in(writer, p.rw.RLock))
		p.rows(2)
		again := f.get(in(reader, p.rw.Lock))
		check.Equal(f, "token", again.Token(), writer.Token())
		f.Unlock(again)
		f.Unlock(f.get(in(writer, p.rw.TryLock))) // beside the reader, which is the writer's own
		f.refused(other.rw.TryRLock, writer.Holder())
		f.refused(other.rw.TryLock, writer.Holder())
		f.Unlock(reader)
		f.Unlock(writer)
		p.rows(0)
	})
}

// TestAWriterInsideAReader would wait for itself.
func TestAWriterInsideAReader(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p := f.process()
		reader := f.get(p.rw.RLock)
		began := time.Now()
		for _, lock := range []method{p.rw.Lock, p.rw.TryLock, f.lockOf(p, key).Lock} {
			f.Is(check.ErrorOf(lock(reader.Context())), sqllock.ErrInvalid)
		}
		// A plain lease of the key is no write lease.
		plain := check.Value(p.registry.TryLock(reader.Context(), key))(f)
		f.Is(check.ErrorOf(p.rw.Lock(plain.Context())), sqllock.ErrInvalid)
		if time.Since(began) > 0 {
			f.Error("it waited")
		}
		f.Unlock(plain)
		f.Unlock(f.get(in(reader, f.lockOf(p, "another").Lock)))
		ended := reader.Context()
		f.Unlock(reader)
		lease := check.Value(p.rw.Lock(context.WithoutCancel(ended)))(f) // it reads no more
		f.Unlock(lease)
		p.rows(0)
	})
}

// TestAPlainLeaseIsNoWriteLease has the holder of a plain lock ask for the write lock: it must wait for
// the readers, and not for the waiter whose turn it is, which waits for the plain lock.
func TestAPlainLeaseIsNoWriteLease(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		reader := f.get(other.rw.RLock)
		plain := check.Value(p.registry.TryLock(f.Context(), key))(f)
		waiting := f.start(f.Context(), other.rw.Lock)
		f.holderOf(p, turn)
		f.refused(in(plain, p.rw.TryLock), reader.Holder())
		f.Unlock(f.get(in(plain, p.rw.TryRLock)))
		writing := f.start(plain.Context(), p.rw.Lock)
		f.waits(writing)
		f.Unlock(reader)
		writer := f.gets(writing)
		check.Equal(f, "holder inside the plain lease", writer.Holder(), plain.Holder())
		f.waits(waiting)
		f.Unlock(writer)
		f.Unlock(plain)
		f.Unlock(f.gets(waiting))
		p.rows(0)
	})
}

// TestALostLeaseIsNotEntered has the rows of leases deleted.
func TestALostLeaseIsNotEntered(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p := f.process()
		for _, lock := range []method{p.rw.Lock, p.rw.RLock} {
			lost := f.get(lock)
			f.Must(p.repository.ReleaseAll(f.Context()))
			f.Is(lost.Renew(f.Context()), sqllock.ErrLockLost)
			ctx := context.WithoutCancel(lost.Context())
			for _, ctx := range []context.Context{ctx, lost.Context()} {
				err := check.ErrorOf(p.rw.RLock(ctx))
				f.Is(err, sqllock.ErrLockLost)
				check.IsNot(f, err, sqllock.ErrNotAcquired)
			}
			f.Is(lost.Unlock(f.Context()), sqllock.ErrLockLost)
			f.Unlock(check.Value(p.rw.Lock(ctx))(f)) // it was unlocked, so ctx is like any other
		}
		p.rows(0)
	})
}

// TestALostPlainLeaseEndsTheWaitForReaders loses the lease in which the write lock was to be entered.
func TestALostPlainLeaseEndsTheWaitForReaders(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p := f.process()
		p.crashed(lockKey+" reader 7", time.Hour)
		plain := check.Value(p.registry.Lock(f.Context(), key))(f)
		writing := f.start(plain.Context(), p.rw.Lock)
		time.Sleep(time.Second)
		f.Must(check.ErrorOf(p.repository.Delete(f.Context(), key, plain.Holder())))
		f.Is(plain.Renew(f.Context()), sqllock.ErrLockLost)
		err := (<-writing).err
		f.Is(err, sqllock.ErrLockLost)
		check.IsNot(f, err, sqllock.ErrNotAcquired)
		f.Must(p.repository.ReleaseAll(f.Context()))
	})
}

// TestAWriterThatStandsStillHasLostNothing has the process stand still for as long as a lease lasts, when it has acquired the
// writer's row and has not seen yet whether readers are in. Nothing was done under that lease.
func TestAWriterThatStandsStillHasLostNothing(t *testing.T) {
	inBubble(t, func(f *fixture) {
		var still atomic.Bool
		p := f.processWith(sqllock.RegistryOptions{TTL: ttl, NoRenew: true, Observers: []*observe.Observer{{
			Acquire: func(ctx context.Context, _ observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
				return ctx, func(observe.AcquireEnd) {
					if still.Swap(false) {
						time.Sleep(ttl)
					}
				}
			},
		}}})
		still.Store(true)
		f.Is(check.ErrorOf(p.rw.TryLock(f.Context())), sqllock.ErrNotAcquired)
		still.Store(true)
		f.Unlock(f.get(p.rw.Lock))
	})
}

// TestALeaseThatEndsMeanwhileIsNotEntered has a lease be unlocked when the call that enters it has found it
// in its context. Its row is then acquired anew, which is not enough to have the lock.
func TestALeaseThatEndsMeanwhileIsNotEntered(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lock, beside func(p *process) method
	}{
		"reader": {rlock, func(p *process) method { return p.rw.TryLock }},
		"writer": {wlock, func(p *process) method { return p.rw.TryRLock }},
	} {
		runInBubble(t, name, func(f *fixture) {
			var outer, beside *sqllock.Lease
			other := f.process()
			p := f.processWith(sqllock.RegistryOptions{TTL: ttl, Observers: []*observe.Observer{{
				Acquire: func(ctx context.Context, _ observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
					if outer != nil && beside == nil {
						f.Unlock(outer)
						beside = f.get(test.beside(other))
					}
					return ctx, nil
				},
			}}, NoRenew: true})
			outer = f.get(test.lock(p))
			entering := f.start(context.WithoutCancel(outer.Context()), test.lock(p))
			f.waits(entering)
			f.Unlock(beside)
			f.Unlock(f.gets(entering))
			p.rows(0)
		})
	}
}
