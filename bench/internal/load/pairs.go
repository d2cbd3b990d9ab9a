package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/bench/internal/contender"
	"github.com/sqllock/sqllock/bench/internal/record"
	"github.com/sqllock/sqllock/bench/internal/stats"
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
		if _, err := repeat(ctx, session, workers, a.Settings.Warm); err != nil {
			return err
		}
		began := time.Now()
		took, err := repeat(ctx, session, workers, a.Settings.Measure)
		round.Values = latencies(took, time.Since(began))
		round.Values["connections"] = float64(session.Connections())
		return err
	})
	return round, err
}

// repeat runs the workers for a while, and returns the time of each pair in microseconds.
func repeat(ctx context.Context, session contender.Session, workers int, lasting time.Duration) ([]float64, error) {
	took := make([][]float64, workers)
	errs := make([]error, workers)
	end := time.Now().Add(lasting)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			key := fmt.Sprintf("pairs-%d", i)
			for now := time.Now(); now.Before(end) && errs[i] == nil; {
				errs[i] = pair(ctx, session, key)
				after := time.Now()
				took[i] = append(took[i], micros(after.Sub(now)))
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
		"p90_us":      stats.Quantile(took, 0.9),
		"p99_us":      stats.Quantile(took, 0.99),
		"max_us":      took[len(took)-1],
	}
}

func valuesOf(o contender.Outcome) map[string]float64 {
	values := map[string]float64{"pairs_per_s": o.PairsPerSecond}
	for name, d := range map[string]time.Duration{"mean_us": o.Mean, "p50_us": o.P50, "p99_us": o.P99} {
		if d > 0 {
			values[name] = micros(d)
		}
	}
	return values
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// Repeat runs workers of one contender, and returns the number of pairs.
func (a *Arena) Repeat(ctx context.Context, c contender.Contender, workers int, lasting time.Duration) (pairs int, err error) {
	err = during(ctx, c, a.Place(c), func(session contender.Session) error {
		took, err := repeat(ctx, session, workers, lasting)
		pairs = len(took)
		return err
	})
	return pairs, err
}
