package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sqllock/sqllock"
)

// contentionTests are about many at once.
var contentionTests = []test{
	{"ACounterLosesNoUpdate", func(w *world) {
		const processes, callers, rounds = 3, 3, 5
		var counter, inside int
		w.crowd(processes, callers, func(r *sqllock.Registry) error {
			for range rounds {
				err := r.ExecuteLocked(w.Context(), "k", func(context.Context) error {
					if inside++; inside != 1 {
						return errors.New("two holders")
					}
					counter++
					inside--
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		same(w, "counter", counter, processes*callers*rounds)
	}},
	{"OfTwentyTriesExactlyOneSucceeds", func(w *world) {
		for round := range 3 {
			var winners atomic.Int64
			w.crowd(20, 1, func(r *sqllock.Registry) error {
				lock, err := r.Obtain(fmt.Sprint(round))
				if err != nil {
					return err
				}
				_, err = lock.TryLock(w.Context())
				if err == nil {
					winners.Add(1)
				} else if !errors.Is(err, sqllock.ErrNotAcquired) {
					return err
				}
				return nil
			})
			same(w, "winners", winners.Load(), 1)
		}
	}},
	{"ExclusiveAccessFromFirstToLast", func(w *world) {
		first, second := w.registry(ttl), w.registry(ttl)
		var order []int
		work := func(from int) func(context.Context) error {
			return func(context.Context) error {
				order = append(order, from, from+1, from+2)
				return nil
			}
		}
		lease := w.acquire(w.obtain(first))
		ended := make(chan error)
		go func() { ended <- second.ExecuteLocked(w.Context(), "k", work(4)) }()
		w.must(first.ExecuteLocked(lease.Context(), "k", work(1)))
		w.must(lease.Unlock(w.Context()))
		w.must(<-ended)
		if !slices.Equal(order, []int{1, 2, 3, 4, 5, 6}) {
			w.Fatal(order)
		}
	}},
	{"AFreeLockIsGotAtTheFirstTry", func(w *world) {
		l := w.lock(ttl)
		for range 10 {
			w.must(w.acquire(l).Unlock(w.Context()))
		}
	}},
	{"ManyKeysAtOnceGiveNoErrors", func(w *world) {
		var key atomic.Int64
		w.crowd(4, 4, func(r *sqllock.Registry) error {
			for range 5 {
				err := r.ExecuteLocked(w.Context(), fmt.Sprint(key.Add(1)), func(context.Context) error { return nil })
				if err != nil {
					return err
				}
			}
			return nil
		})
	}},
}

// crowd runs do in some goroutines of some processes, all at once.
func (w *world) crowd(processes, callers int, do func(*sqllock.Registry) error) {
	w.Helper()
	var group sync.WaitGroup
	start := make(chan struct{})
	for range processes {
		r := w.registry(ttl)
		for range callers {
			group.Go(func() {
				<-start
				if err := do(r); err != nil {
					w.Error(err)
				}
			})
		}
	}
	close(start)
	group.Wait()
	if w.Failed() {
		w.FailNow()
	}
}
