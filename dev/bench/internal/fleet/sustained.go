package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// workers is how many callers of a process acquire and release in a sustained load.
const workers = 64

// sustained measures one process whose workers acquire and release random keys, minute by minute, with the size of the
// table and its indexes: rows that come and go leave dead ones.
func sustained(ctx context.Context, s *durable.Server, keys int, o options) (err error) {
	gauge, err := newGauge(ctx, s, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gauge.close()) }()
	r, err := open(ctx, s, sqllock.RegistryOptions{TTL: o.ttl})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close(context.WithoutCancel(ctx))) }()

	ending, end := context.WithTimeout(ctx, o.sustained)
	defer end()
	var pairs atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, workers)
	for worker := range workers {
		all.Go(func() {
			for ending.Err() == nil && errs[worker] == nil {
				errs[worker] = pair(ctx, r, key(rand.IntN(keys))) //nolint:gosec // no secret
				pairs.Add(1)
			}
		})
	}
	for minute := 1; ending.Err() == nil; minute++ {
		from, before := time.Now(), pairs.Load()
		select {
		case <-time.After(time.Minute):
		case <-ending.Done():
		}
		var size int64
		err = errors.Join(err, gauge.db.GetContext(ctx, &size, gauge.texts.size))
		fmt.Printf("| %d keys | %d | %.0f | %.1f |\n", keys, minute, float64(pairs.Load()-before)/time.Since(from).Seconds(), float64(size)/1e6)
	}
	all.Wait()
	return errors.Join(append(errs, err)...)
}

// pair waits for a lock that another worker holds.
func pair(ctx context.Context, r *sqllock.Registry, key string) error {
	lease, err := r.Lock(ctx, key)
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}
