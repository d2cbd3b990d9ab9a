package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/dev/bench/internal/stats"
)

// pairs measures acquiring and releasing with several workers. Each worker uses its own key, so
// no worker waits for a lock.
func pairs(workers int) Load {
	return Load{
		Name: fmt.Sprintf("pairs %d", workers),
		Run: func(ctx context.Context, a *Arena, c contender.Contender) (record.Round, error) {
			return a.pairs(ctx, c, a.Place(c), workers)
		},
	}
}

func (a *Arena) pairs(ctx context.Context, c contender.Contender, at contender.Place, workers int) (round record.Round, err error) {
	err = during(ctx, c, at, func(session contender.Session) error {
		if runner, ok := session.(contender.Runner); ok {
			outcome, err := runner.Run(ctx, workers, a.Settings.Warm, a.Settings.Measure)
			round.Values = valuesOf(outcome)
			round.Values["connections"] = float64(session.Connections())
			return err
		}
		round, err = a.measure(ctx, session, workers, pairsOf(session))
		return err
	})
	return round, err
}

// A step is what a worker repeats.
type step func(ctx context.Context, worker int) error

// pairsOf are pairs of a session, each worker with its own key.
func pairsOf(session contender.Session) step {
	return func(ctx context.Context, worker int) error {
		return pair(ctx, session, fmt.Sprintf("pairs-%d", worker))
	}
}

// measure warms a session up, and measures it.
func (a *Arena) measure(ctx context.Context, session contender.Session, workers int, do step) (round record.Round, err error) {
	if _, err := repeat(ctx, do, workers, a.Settings.Warm); err != nil {
		return round, err
	}
	began := time.Now()
	took, err := repeat(ctx, do, workers, a.Settings.Measure)
	round.Values = latencies(took, time.Since(began))
	round.Values["connections"] = float64(session.Connections())
	return round, err
}

// repeat runs the workers for a while, and returns the time of each step in microseconds.
func repeat(ctx context.Context, do step, workers int, lasting time.Duration) ([]float64, error) {
	took := make([][]float64, workers)
	errs := make([]error, workers)
	end := time.Now().Add(lasting)
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for now := time.Now(); now.Before(end) && errs[worker] == nil; {
				errs[worker] = do(ctx, worker)
				after := time.Now()
				took[worker] = append(took[worker], micros(after.Sub(now)))
				now = after
			}
		})
	}
	all.Wait()
	return slices.Concat(took...), errors.Join(errs...)
}

func pair(ctx context.Context, session contender.Session, key string) error {
	unlock, err := session.Lock(ctx, key)
	if err != nil {
		return err
	}
	return unlock(ctx)
}

func latencies(took []float64, altogether time.Duration) map[string]float64 {
	slices.Sort(took)
	return map[string]float64{
		"pairs_per_s": float64(len(took)) / altogether.Seconds(),
		"p50_us":      stats.Quantile(took, 0.5),
		"p99_us":      stats.Quantile(took, 0.99),
	}
}

func valuesOf(o contender.Outcome) map[string]float64 {
	return map[string]float64{"pairs_per_s": o.PairsPerSecond, "p50_us": micros(o.P50), "p99_us": micros(o.P99)}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
