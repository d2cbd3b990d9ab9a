package load

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// readers measures what a read lock costs, each worker with its own key. Contenders that have none
// have the plain lock.
func readers(workers int) Load {
	return Load{
		Name: fmt.Sprintf("readers %d", workers), Named: true,
		Run: func(ctx context.Context, a *Arena, c contender.Contender) (record.Round, error) {
			return a.steps(ctx, c, workers, func(session contender.Session) step {
				return func(ctx context.Context, worker int) error {
					unlock, err := lockToRead(ctx, session, fmt.Sprintf("read-%d", worker))
					if err != nil {
						return err
					}
					return unlock(ctx)
				}
			})
		},
	}
}

// readersTogether measures sixteen workers that read under one key, for a millisecond each: all at
// once, or one after the other if the contender has no read lock.
func readersTogether() Load {
	return Load{
		Name: "readers of one key", Named: true,
		Run: func(ctx context.Context, a *Arena, c contender.Contender) (record.Round, error) {
			const workers = 16
			return a.steps(ctx, c, workers, func(session contender.Session) step {
				return func(ctx context.Context, _ int) error {
					unlock, err := lockToRead(ctx, session, "read")
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

func lockToRead(ctx context.Context, session contender.Session, key string) (contender.Unlock, error) {
	if reading, ok := session.(contender.ReadSession); ok {
		return reading.RLock(ctx, key)
	}
	return session.Lock(ctx, key)
}
