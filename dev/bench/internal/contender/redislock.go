package contender

import (
	"cmp"
	"context"
	"time"

	"github.com/bsm/redislock"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// redislocks are github.com/bsm/redislock on a Redis with its defaults, which may lose the last
// seconds in a crash, and on one that waits for the disk. As redislock's documentation
// suggests, each pause between tries is twice as long as the one before, but never longer
// than sqllock's.
func redislocks() []Contender {
	var all []Contender
	for _, server := range []struct{ kind, name string }{
		{durable.Redis, "redislock"}, {durable.RedisAlways, "redislock, appendfsync always"},
	} {
		all = append(all, Contender{
			Name:     server.name,
			Library:  "github.com/bsm/redislock",
			Database: server.kind,
			Settings: "waits 2, 4, 8 … up to 100 ms between tries",
			Quick:    server.kind == durable.Redis,
			Loads:    append([]string{tenKeys}, anything...),
			Open: func(_ context.Context, at Place) (Session, error) {
				client, err := redisClient(at)
				if err != nil {
					return nil, err
				}
				return &redislockSession{redisPool{client}, redislock.New(client), at.TTL}, nil
			},
		})
	}
	return all
}

type redislockSession struct {
	redisPool
	locker *redislock.Client
	ttl    time.Duration
}

func (s *redislockSession) Lock(ctx context.Context, key string) (Unlock, error) {
	return releasing(s.locker.Obtain(ctx, key, s.lasting(), retrying()))
}

// LockAll implements [JointSession].
func (s *redislockSession) LockAll(ctx context.Context, keys []string) (Unlock, error) {
	return releasing(s.locker.ObtainMulti(ctx, keys, s.lasting(), retrying()))
}

func (s *redislockSession) lasting() time.Duration {
	const usual = 10 * time.Second // there is no default; this is sqllock's
	return cmp.Or(s.ttl, usual)
}

func retrying() *redislock.Options {
	return &redislock.Options{RetryStrategy: redislock.ExponentialBackoff(2*time.Millisecond, 100*time.Millisecond)}
}

func releasing(lock *redislock.Lock, err error) (Unlock, error) {
	if err != nil {
		return nil, err
	}
	return lock.Release, nil
}
