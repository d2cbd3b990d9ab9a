package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// handOff alternates one key between two processes. It measures the time from the call that
// releases the key in one process until the other one has acquired it. The waiter starts at a
// random time within a tenth of a second, so that releases fall into all phases of polling.
func handOff() Load {
	return Load{Name: "hand-off", Run: func(ctx context.Context, a *Arena, c contender.Contender) (round record.Round, err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var players [2]*player
		for i := range players {
			if players[i], err = enter(ctx, part{Contender: c.Name, Place: a.Place(c)}); err != nil {
				return round, err
			}
			defer players[i].leave()
		}
		round.Samples, err = a.play(players[0], players[1])
		if errors.Is(err, errSilent) {
			round.Values, err = map[string]float64{"limit_ms": millis(a.Settings.Limit)}, nil
		}
		return round, err
	}}
}

// play hands the key over repeatedly, and returns the times in microseconds.
func (a *Arena) play(holder, waiter *player) (samples []float64, err error) {
	holder.ask("lock")
	if _, err := holder.answer(a.Settings.Limit); err != nil {
		return nil, err
	}
	for end := time.Now().Add(2 * a.Settings.Measure); time.Now().Before(end) || len(samples) == 0; {
		waiter.ask("lock")
		time.Sleep(10*time.Millisecond + rand.N(100*time.Millisecond)) //nolint:gosec // no secret
		holder.ask("unlock")
		released, err := holder.answer(a.Settings.Limit)
		if err != nil {
			return samples, err
		}
		acquired, err := waiter.answer(a.Settings.Limit)
		if err != nil {
			return samples, err
		}
		samples = append(samples, micros(acquired-released))
		holder, waiter = waiter, holder
	}
	return samples, nil
}
