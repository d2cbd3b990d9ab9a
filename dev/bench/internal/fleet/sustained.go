package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dev/bench/internal/stats"
)

// A sustained load is one process whose workers acquire and release random keys while its automatic renewal keeps
// some leases.
type sustained struct{ workers, keys int }

// keptLeases are what the process keeps beside its pairs.
const keptLeases = 20

// sustain measures loads minute by minute, with the size of the table and its indexes: rows that come and go leave dead
// ones, and an old snapshot keeps these.
func sustain(ctx context.Context, kind string, s *durable.Server, o options) (err error) {
	loads := []sustained{{64, 100}, {64, 1_000_000}}
	if o.snapshot {
		loads = []sustained{{1, 1}, {64, 100}}
	}
	fmt.Printf("\n%s\n\n| workers | keys | minute | pairs/s | p50, ms | p99, ms | table and indexes, MB | mean renewal | slowest | failed | lost |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n", kind)
	for _, load := range loads {
		err = errors.Join(err, load.measure(ctx, s, o))
	}
	return err
}

func (l sustained) measure(ctx context.Context, s *durable.Server, o options) (err error) {
	gauge, err := newGauge(ctx, s, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gauge.close()) }()
	var seen beats
	r, err := open(ctx, s, sqllock.RegistryOptions{TTL: o.ttl, Observers: seen.observers()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close(context.WithoutCancel(ctx))) }()
	kept := make([]*sqllock.Lease, keptLeases)
	for i := range kept {
		if kept[i], err = r.TryLock(ctx, fmt.Sprintf("kept-%d", i)); err != nil {
			return err
		}
	}

	ending, end := context.WithTimeout(ctx, o.sustained)
	defer end()
	var took times
	var all sync.WaitGroup
	errs := make([]error, l.workers)
	for worker := range l.workers {
		all.Go(func() {
			for ending.Err() == nil && errs[worker] == nil {
				began := time.Now()
				errs[worker] = pair(ctx, r, key(rand.IntN(l.keys))) //nolint:gosec // no secret
				took.add(time.Since(began))
			}
		})
	}
	for minute := 1; ending.Err() == nil; minute++ {
		if minute == 2 && o.snapshot {
			var release func() error
			if release, err = gauge.keepSnapshot(ctx); err != nil {
				break
			}
			defer func() { err = errors.Join(err, release()) }()
		}
		from := time.Now()
		select {
		case <-time.After(time.Minute):
		case <-ending.Done():
		}
		var size int64
		err = errors.Join(err, gauge.db.GetContext(ctx, &size, gauge.texts.size))
		l.report(minute, took.take(), time.Since(from), size, &seen, lostOf(kept))
	}
	end()
	all.Wait()
	if lost := lostOf(kept); lost > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %d", errLost, lost))
	}
	return errors.Join(append(errs, err)...)
}

func (l sustained) report(minute int, took []float64, passed time.Duration, size int64, seen *beats, lost int) {
	slices.Sort(took)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	mean, slowest := seen.timesLocked()
	fmt.Printf("| %d | %d | %d | %.0f | %.2f | %.2f | %.1f | %v | %v | %d | %d |\n", l.workers, l.keys, minute,
		float64(len(took))/passed.Seconds(), stats.Quantile(took, 0.5), stats.Quantile(took, 0.99), float64(size)/1e6,
		mean, slowest, seen.failed, lost)
	seen.resetLocked()
}

func lostOf(leases []*sqllock.Lease) (lost int) {
	for _, lease := range leases {
		if lease.Context().Err() != nil {
			lost++
		}
	}
	return lost
}

// pair waits for a lock that another worker holds.
func pair(ctx context.Context, r *sqllock.Registry, key string) error {
	lease, err := r.Lock(ctx, key)
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

// times are those of pairs, in milliseconds.
type times struct {
	mu   sync.Mutex
	took []float64
}

func (t *times) add(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took = append(t.took, float64(took)/float64(time.Millisecond))
}

// take returns what was added since it was last called.
func (t *times) take() []float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	took := t.took
	t.took = nil
	return took
}
