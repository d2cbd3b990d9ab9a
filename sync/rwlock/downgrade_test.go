package rwlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// TestDowngradeOfALeaseThatIsLostMeanwhile has a writer of another process come and go before the reader's
// row is there: after the write lease has ended, and after its row was deleted.
func TestDowngradeOfALeaseThatIsLostMeanwhile(t *testing.T) {
	t.Parallel()
	const short = 2 * time.Second
	for name, lose := range map[string]func(p *process) error{
		"ended":   func(*process) error { time.Sleep(short + 100*time.Millisecond); return nil },
		"deleted": func(p *process) error { return p.repository.ReleaseAll(p.f.Context()) },
	} {
		runInBubble(t, name, func(f *fixture) {
			p, other := f.process(), f.process()
			writer := f.get(p.rw.WithTTL(short).Lock)
			p.network.Follow(func(_ context.Context, m flaky.Moment) error {
				if m.N != 1 || m.Done {
					return nil
				}
				p.network.Follow(nil)
				lost := lose(p)
				next, err := other.rw.TryLock(f.Context())              //nolint:contextcheck // it is another caller
				return errors.Join(lost, err, next.Unlock(f.Context())) //nolint:contextcheck // as above
			})
			reader, err := p.rw.Downgrade(f.Context(), writer)
			f.Is(err, sqllock.ErrLockLost)
			if reader != nil {
				f.Error("another writer came in between")
				f.Unlock(reader)
			}
			p.rows(0)
		})
	}
}

// TestDowngradeBesideTheNextWriter has the write lease end meanwhile, and another writer come and stay: the
// error says that the lease is lost, and not only that another holder has the lock.
func TestDowngradeBesideTheNextWriter(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		writer := f.get(p.rw.WithTTL(time.Second).Lock)
		p.network.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.N == 1 && !m.Done {
				time.Sleep(3 * time.Second)
			}
			return nil
		})
		var err error
		var downgrading sync.WaitGroup
		downgrading.Go(func() { _, err = p.rw.Downgrade(f.Context(), writer) })
		time.Sleep(2 * time.Second)
		next := f.get(other.rw.Lock)
		downgrading.Wait()
		p.network.Follow(nil)
		f.Is(err, sqllock.ErrLockLost)
		f.Unlock(next)
		p.rows(0)
	})
}

// TestDowngradeOfAnEnteredLock leaves the write lock to the lease that was entered.
func TestDowngradeOfAnEnteredLock(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		outer := f.get(p.rw.Lock)
		inner := f.get(in(outer, p.rw.Lock))
		reader := check.Value(p.rw.Downgrade(outer.Context(), inner))(f) // it ends with outer, and not with inner
		f.refused(other.rw.TryRLock, outer.Holder())
		f.Unlock(reader)
		f.Unlock(outer)
		p.rows(0)
	})
}

// TestWhatCannotBeDowngraded leaves the lease what it was.
func TestWhatCannotBeDowngraded(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p := f.process()
		ctx := f.Context()
		fails := func(ctx context.Context, lease *sqllock.Lease, wanted ...error) {
			f.Helper()
			reader, err := p.rw.Downgrade(ctx, lease)
			if reader != nil {
				f.Error("it was downgraded")
			}
			f.Is(err, wanted...)
		}
		fails(ctx, nil, sqllock.ErrNotHeld)
		fails(ctx, new(sqllock.Lease), sqllock.ErrNotHeld)

		writer := f.get(p.rw.Lock)
		fails(writer.Context(), writer, sqllock.ErrInvalid)
		fails(f.get(in(writer, p.rw.RLock)).Context(), writer, sqllock.ErrInvalid)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		fails(ended, writer, sqllock.ErrNotAcquired, context.Canceled)
		f.Is(check.ErrorOf(f.lockOf(p, "another").Downgrade(ctx, writer)), sqllock.ErrNotHeld)
		f.Is(check.ErrorOf(f.process().rw.Downgrade(ctx, writer)), sqllock.ErrNotHeld) // another registry
		other := check.Value(p.registry.Lock(writer.Context(), "another"))(f)          // its context carries the write lease
		fails(ctx, other, sqllock.ErrNotHeld)
		f.Unlock(other)
		f.Must(writer.Renew(ctx))
		f.Unlock(writer)
		fails(ctx, writer, sqllock.ErrNotHeld)
		reader := f.get(p.rw.RLock) // beside the one that was made inside of the write lock
		fails(ctx, reader, sqllock.ErrNotHeld)

		f.Must(p.repository.ReleaseAll(ctx))
		lost := f.get(p.rw.TryLock)
		f.Must(p.repository.ReleaseAll(ctx))
		taken := p.crashed(key, time.Minute)
		fails(ctx, lost, sqllock.ErrNotAcquired) // its row is another's
		f.Is(lost.Renew(ctx), sqllock.ErrLockLost)
		fails(ctx, lost, sqllock.ErrLockLost)
		f.refused(p.rw.TryRLock, taken)
		p.rows(1)
	})
}

// TestDowngradeWithoutASeat has the writer itself be all readers.
func TestDowngradeWithoutASeat(t *testing.T) {
	check.Long(t)
	inBubble(t, func(f *fixture) {
		p := f.process()
		writer := f.get(p.rw.Lock)
		var readers []*sqllock.Lease
		for range rwlock.MaxReaders {
			readers = append(readers, f.get(in(writer, p.rw.RLock)))
		}
		_, err := p.rw.Downgrade(f.Context(), writer)
		f.Is(err, sqllock.ErrNotAcquired)
		f.Must(writer.Renew(f.Context()))
		f.Unlock(readers[0])
		readers[0], err = p.rw.Downgrade(f.Context(), writer)
		f.Must(err)
		for _, reader := range readers {
			f.Unlock(reader)
		}
		p.rows(0)
	})
}
