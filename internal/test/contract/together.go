package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
)

// togetherTests are about many callers of one process, whose statements travel
// together.
var togetherTests = []test{
	{"EachOfACrowdGetsItsOwnAnswer", func(w *world) {
		taken := w.acquire(w.lock(ttl))
		r := w.registry(ttl)
		w.all(40, func(i int) error {
			for round := range 5 {
				switch err := w.visit(r, i, round); {
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
		w.must(taken.Context().Err())
		w.must(taken.Unlock(w.Context()))
		same(w, "rows", len(w.rows(w.process())), 0)
	}},
	{"TokensOfACrowdRise", func(w *world) {
		registries := []*sqllock.Registry{w.registry(ttl), w.registry(ttl)}
		var mu sync.Mutex
		last := make(map[string]int64)
		w.all(24, func(i int) error {
			key := fmt.Sprint(i % 8)
			for range 4 {
				lock, err := registries[i%2].Obtain(key)
				if err != nil {
					return err
				}
				lease, err := lock.Lock(w.Context())
				if err != nil {
					return err
				}
				mu.Lock()
				if lease.Token() <= last[key] {
					err = fmt.Errorf("key %s: token %d after %d", key, lease.Token(), last[key])
				}
				last[key] = lease.Token()
				mu.Unlock()
				err = errors.Join(err, lease.Unlock(w.Context()))
				if err != nil {
					return err
				}
			}
			return nil
		})
	}},
	// A holder may stand in the rows of several keys: results belong to a key and a holder.
	{"OneHolderOfSeveralKeysIsToldOfEach", func(w *world) {
		const keys, rounds = 24, 4
		r, rival := w.process(), w.process()
		for round := range rounds {
			key := func(i int) string { return fmt.Sprintf("%d of %d", i, round) }
			free := func(i int) bool { return i%3 > 0 }
			for i := range keys {
				if !free(i) {
					w.taken(rival, key(i), ttl)
				}
			}
			holder := r.NewHolder()
			w.all(keys, func(i int) error {
				got, err := r.Acquire(w.Context(), key(i), holder, ttl)
				if err == nil && got.Acquired != free(i) {
					err = fmt.Errorf("acquire %s: %+v", key(i), got)
				}
				return err
			})
			w.all(keys, func(i int) error {
				deleted, err := r.Delete(w.Context(), key(i), holder)
				if err == nil && deleted != free(i) {
					err = fmt.Errorf("delete %s: %v", key(i), deleted)
				}
				return err
			})
		}
	}},
	{"TheFirstDeletionsOfRowsThatAreNotThere", func(w *world) {
		for range 3 {
			r := w.process() // has sent nothing yet
			w.all(8, func(i int) error {
				deleted, err := r.Delete(w.Context(), fmt.Sprint(i), r.NewHolder())
				if err == nil && deleted {
					err = fmt.Errorf("deleted row %d, which was not there", i)
				}
				return err
			})
		}
	}},
	{"APinnedRowHoldsUpNobodyElse", func(w *world) {
		if w.cell.Dialect.Embedded {
			return // there a transaction that has written holds up everything
		}
		r := w.registry(ttl)
		pinned := w.acquire(w.lock(ttl))
		tx := w.begin(nil)
		w.must(pinned.Guard(w.Context(), tx))
		w.all(16, func(i int) error {
			for round := range 3 {
				began := time.Now()
				if i == 0 && w.cell.Dialect.Name == "postgres" {
					_, err := w.obtain(r).TryLock(w.Context())
					if !errors.Is(err, sqllock.ErrNotAcquired) {
						return fmt.Errorf("the pinned row: %w", err)
					}
				} else if err := w.visit(r, 5*i+5, round); err != nil {
					return err
				}
				if took := time.Since(began); took > ttl/4 {
					return fmt.Errorf("%d took %v", i, took)
				}
			}
			return nil
		})
		w.must(tx.Commit())
		w.must(pinned.Unlock(w.Context()))
	}},
}

// visit locks and unlocks, a key of its own or as its number says.
func (w *world) visit(r *sqllock.Registry, i, round int) error {
	ctx, key := w.Context(), fmt.Sprintf("%d/%d", i, round)
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

// all runs do in n goroutines at once.
func (w *world) all(n int, do func(i int) error) {
	w.Helper()
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if err := do(i); err != nil {
				w.Error(err)
			}
		})
	}
	group.Wait()
	if w.Failed() {
		w.FailNow()
	}
}
