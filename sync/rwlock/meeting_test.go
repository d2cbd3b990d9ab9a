package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/observe"
)

// TestAWriterWaitsForAReaderThatMeetsIt: a reader comes in after the writer has found nobody, and
// before it has its row. Lock waits until the reader has left; it does not return ErrNotAcquired.
func TestAWriterWaitsForAReaderThatMeetsIt(t *testing.T) {
	inBubble(t, func(f *fixture) {
		readers := f.process()
		var met *sqllock.Lease
		writers := f.processWith(sqllock.RegistryOptions{TTL: ttl, Observers: []*observe.Observer{{
			Acquire: func(ctx context.Context, e observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
				if e.Key == key && met == nil {
					var err error
					met, err = readers.rw.RLock(ctx)
					f.Must(err)
					time.AfterFunc(time.Second, func() { f.Must(met.Unlock(f.Context())) })
				}
				return nil, nil
			},
		}}})
		began := time.Now()
		lease := f.get(writers.rw.Lock)
		if waited := time.Since(began); waited < time.Second {
			f.Errorf("the writer came in after %v, beside a reader", waited)
		}
		f.Unlock(lease)
	})
}
