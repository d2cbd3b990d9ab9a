package contract

import (
	"context"
	"errors"
	"fmt"
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
