package contender

import (
	"context"
	"errors"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// redsyncs are github.com/go-redsync/redsync on one Redis, by its defaults: 32 tries with pauses of 50 to 250 ms. A
// caller that has none left begins anew.
func redsyncs() []Contender {
	return []Contender{{
		Name:     "redsync",
		Library:  "github.com/go-redsync/redsync/v4",
		Database: durable.Redis,
		Settings: "the defaults: lease 8 s, pauses of 50 to 250 ms between tries",
		Loads:    []string{"pairs 1", "hand-off"},
		Open: func(_ context.Context, at Place) (Session, error) {
			client, err := redisClient(at)
			if err != nil {
				return nil, err
			}
			return &redsyncSession{redisPool{client}, redsync.New(goredis.NewPool(client))}, nil
		},
	}}
}

type redsyncSession struct {
	redisPool
	locker *redsync.Redsync
}

func (s *redsyncSession) Lock(ctx context.Context, key string) (Unlock, error) {
	mutex := s.locker.NewMutex("redsync-" + key) // what another contender of this Redis has left held is none of ours
	for {
		err := mutex.LockContext(ctx)
		if err == nil {
			break
		}
		if taken := (*redsync.ErrTaken)(nil); ctx.Err() != nil || !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed) {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		_, err := mutex.UnlockContext(ctx)
		return err
	}, nil
}

// A redisPool is the common part of sessions on Redis.
type redisPool struct{ client *redis.Client }

func redisClient(at Place) (*redis.Client, error) {
	options, err := redis.ParseURL(at.DSN)
	if err != nil {
		return nil, err
	}
	options.PoolSize = at.Connections
	return redis.NewClient(options), nil
}

func (p redisPool) Connections() int { return int(p.client.PoolStats().TotalConns) }

func (p redisPool) Close() error { return p.client.Close() }
