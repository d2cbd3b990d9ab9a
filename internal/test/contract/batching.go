package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
)

// batchingTests are about many callers of one process, whose calls are batched into common statements.
var batchingTests = []test{
	inEachCell("EachCallerGetsItsOwnResult", func(f *fixture) {
		acquireRow := f.acquire(f.lock(ttl))
		r := f.registry(ttl)
		f.inGoroutines(40, func(i int) error {
			for round := range 5 {
				switch err := f.visit(r, i, round); {
				case i%5 == 1 && !errors.Is(err, sqllock.ErrNotAcquired): // "k" is taken
					return fmt.Errorf("%d: error %w", i, err)
				case i%5 == 2 && !errors.Is(err, context.Canceled):
					return fmt.Errorf("%d: error %w", i, err)
				case i%5 == 3 && !errors.Is(err, sqllock.ErrInvalid):
					return fmt.Errorf("%d: error %w", i, err)
				case (i%5 == 0 || i%5 == 4) && err != nil:
					return err
				}
			}
			return nil
		})
		f.must(acquireRow.Context().Err())
		f.must(acquireRow.Unlock(f.Context()))
		equal(f, "rows", len(f.rows(f.process())), 0)
	}),
	inEachCell("TokensRiseInBatches", func(f *fixture) {
		registries := []*sqllock.Registry{f.registry(ttl), f.registry(ttl)}
		var mu sync.Mutex
		last := make(map[string]int64)
		f.inGoroutines(24, func(i int) error {
			key := fmt.Sprint(i % 8)
			for range 4 {
				lock, err := registries[i%2].Obtain(key)
				if err != nil {
					return err
				}
				lease, err := lock.Lock(f.Context())
				if err != nil {
					return err
				}
				mu.Lock()
				if lease.Token() <= last[key] {
					err = fmt.Errorf("key %s: token %d after %d", key, lease.Token(), last[key])
				}
				last[key] = lease.Token()
				mu.Unlock()
				err = errors.Join(err, lease.Unlock(f.Context()))
				if err != nil {
					return err
				}
			}
			return nil
		})
	}),
	// One CLIENT_ID may stand in the rows of several keys: a result belongs to a key and a holder.
	inEachCell("OneHolderOfSeveralKeysGetsAResultForEach", func(f *fixture) {
		const keys, rounds = 24, 4
		r, rival := f.process(), f.process()
		for round := range rounds {
			key := func(i int) string { return fmt.Sprintf("%d of %d", i, round) }
			free := func(i int) bool { return i%3 > 0 }
			for i := range keys {
				if !free(i) {
					f.acquireRow(rival, key(i), ttl)
				}
			}
			holder := r.NewHolder()
			f.inGoroutines(keys, func(i int) error {
				got, err := r.Acquire(f.Context(), key(i), holder, ttl)
				if err == nil && got.Acquired != free(i) {
					err = fmt.Errorf("acquire %s: %+v", key(i), got)
				}
				return err
			})
			f.inGoroutines(keys, func(i int) error {
				deleted, err := r.Delete(f.Context(), key(i), holder)
				if err == nil && deleted != free(i) {
					err = fmt.Errorf("delete %s: %v", key(i), deleted)
				}
				return err
			})
		}
	}),
	inEachCell("FirstDeletionsOfMissingRows", func(f *fixture) {
		for range 3 {
			r := f.process() // has sent nothing yet
			f.inGoroutines(8, func(i int) error {
				deleted, err := r.Delete(f.Context(), fmt.Sprint(i), r.NewHolder())
				if err == nil && deleted {
					err = fmt.Errorf("deleted row %d, which did not exist", i)
				}
				return err
			})
		}
	}),
	inEachCell("APinnedRowDelaysNoOtherCaller", func(f *fixture) {
		if f.cell.Dialect == dialect.SQLite() {
			return // there, a transaction that has written blocks all other writers
		}
		r := f.registry(ttl)
		pinned := f.acquire(f.lock(ttl))
		tx := f.begin(nil)
		f.must(tx.guard(f.Context(), pinned))
		f.inGoroutines(16, func(i int) error {
			for round := range 3 {
				if i == 0 && f.cell.Dialect == dialect.Postgres() {
					_, err := f.obtain(r).TryLock(f.Context())
					if !errors.Is(err, sqllock.ErrNotAcquired) {
						return fmt.Errorf("the pinned row: %w", err)
					}
				} else if err := f.visit(r, 5*i+5, round); err != nil {
					return err
				}
			}
			return nil
		})
		f.must(tx.commit())
		f.must(pinned.Unlock(f.Context()))
	}),
}

// visit locks and unlocks a key. i chooses the case: a key of its own, the key that is taken, a cancelled context, or
// an empty key.
func (f *fixture) visit(r *sqllock.Registry, i, round int) error {
	ctx, key := f.Context(), fmt.Sprintf("%d/%d", i, round)
	switch i % 5 {
	case 1:
		key = "k"
	case 2:
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		ctx = cancelled
	case 3:
		key = ""
	}
	lock, err := r.Obtain(key)
	if err != nil {
		return err
	}
	lease, err := lock.TryLock(ctx)
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

// inGoroutines runs do in n goroutines concurrently.
func (f *fixture) inGoroutines(n int, do func(i int) error) {
	f.Helper()
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			check.Is(f, do(i), nil)
		})
	}
	group.Wait()
	if f.Failed() {
		f.FailNow()
	}
}
