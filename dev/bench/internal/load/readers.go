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
	return reading(fmt.Sprintf("readers %d", workers), workers, 0, func(worker int) string { return fmt.Sprintf("read-%d", worker) })
}

// readersTogether measures sixteen workers that read under one key, for a millisecond each: all at
// once, or one after the other if the contender has no read lock.
func readersTogether() Load {
	return reading("readers of one key", 16, time.Millisecond, func(int) string { return "read" })
}

func reading(name string, workers int, lasting time.Duration, key func(worker int) string) Load {
	return Load{
		Name: name, Named: true,
		Run: func(ctx context.Context, a *Arena, c contender.Contender) (record.Round, error) {
			return a.steps(ctx, c, workers, func(session contender.Session) step {
				return func(ctx context.Context, worker int) error {
					unlock, err := lockToRead(ctx, session, key(worker))
					if err != nil {
						return err
					}
					time.Sleep(lasting)
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
