package load

import (
	"context"
	"sync"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// hotKey measures how long thirty workers of one process need to acquire one key, one after the
// other. Each holds it for a millisecond, which is not counted.
func hotKey() Load {
	return Load{Name: "hot key", Run: func(ctx context.Context, a *Arena, c contender.Contender) (round record.Round, err error) {
		err = during(ctx, c, a.Place(c), func(session contender.Session) error {
			if err := pair(ctx, session, "hot"); err != nil {
				return err
			}
			limited, cancel := context.WithTimeout(ctx, a.Settings.Limit)
			defer cancel()
			round.Values = crowd(limited, session)
			round.Values["connections"] = float64(session.Connections())
			return nil
		})
		return round, err
	}}
}

func crowd(ctx context.Context, session contender.Session) map[string]float64 {
	const workers, hold = 30, time.Millisecond
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		held time.Duration
		done int
	)
	began := time.Now()
	for range workers {
		all.Go(func() {
			unlock, err := session.Lock(ctx, "hot")
			if err != nil {
				return // the limit
			}
			since := time.Now()
			time.Sleep(hold)
			after := time.Since(since)
			if unlock(ctx) != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			held += after
			done++
		})
	}
	all.Wait()
	values := map[string]float64{"done": float64(done), "total_ms": millis(time.Since(began)), "holds_ms": millis(held)}
	if done == workers {
		values["total_per_holds"] = values["total_ms"] / values["holds_ms"]
	}
	return values
}
