package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// permits measures workers that each hold one of eight permits for a millisecond. Contenders that
// have no semaphores have a key for each permit, and try one after the other until one is free.
func permits(workers int) Load {
	return Load{
		Name: fmt.Sprintf("permits %d", workers), Named: true,
		Run: func(ctx context.Context, a *Arena, c contender.Contender) (record.Round, error) {
			return a.steps(ctx, c, workers, func(session contender.Session) step {
				return func(ctx context.Context, _ int) error {
					unlock, err := acquirePermit(ctx, session)
					if err != nil {
						return err
					}
					time.Sleep(time.Millisecond)
					return unlock(ctx)
				}
			})
		},
	}
}

const eightPermits = 8

func acquirePermit(ctx context.Context, session contender.Session) (contender.Unlock, error) {
	if permits, ok := session.(contender.PermitSession); ok {
		return permits.Acquire(ctx, "permits", eightPermits)
	}
	try, ok := session.(contender.TrySession)
	if !ok {
		return nil, contender.ErrCannot
	}
	const shortest, longest = 2 * time.Millisecond, 100 * time.Millisecond
	for pause := shortest; ; pause = min(2*pause, longest) {
		for i := range eightPermits {
			unlock, err := try.TryLock(ctx, fmt.Sprintf("permits-%d", i))
			if !errors.Is(err, contender.ErrTaken) {
				return unlock, err
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
