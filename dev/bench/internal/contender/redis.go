package contender

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// rawRedis is a minimal lock on Redis whose release publishes a message, for which a caller that finds the key taken
// waits: the limit for handing a lock to another process by way of Redis.
func rawRedis() []Contender {
	return []Contender{{
		Name:     "raw commands, publish",
		Library:  "the bare commands",
		Version:  "-",
		Database: durable.Redis,
		Settings: "SET NX PX, and a script that deletes and publishes; lease 10 s, no retries",
		Loads:    []string{"pairs 1", "hand-off"},
		Open: func(ctx context.Context, at Place) (Session, error) {
			client, err := redisClient(at)
			if err != nil {
				return nil, err
			}
			return &rawRedisSession{redisPool: redisPool{client}}, client.Ping(ctx).Err()
		},
	}}
}

type rawRedisSession struct {
	redisPool
	last atomic.Int64
}

// publishing deletes a key that has a value, and tells those that wait for it.
var publishing = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then
	redis.call("DEL", KEYS[1])
	return redis.call("PUBLISH", KEYS[1], "")
end
return -1`)

func (s *rawRedisSession) Lock(ctx context.Context, key string) (Unlock, error) {
	key = "raw-" + key // what another contender of this Redis has left held is none of ours
	holder := fmt.Sprintf("raw-%d-%d", os.Getpid(), s.last.Add(1))
	set, err := s.set(ctx, key, holder)
	if err == nil && !set {
		err = s.wait(ctx, key, holder)
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return publishing.Run(ctx, s.client, []string{key}, holder).Err()
	}, nil
}

func (s *rawRedisSession) set(ctx context.Context, key, holder string) (bool, error) {
	return s.client.SetNX(ctx, key, holder, 10*time.Second).Result()
}

// wait sets the key as soon as it can. It listens before it tries once more, so that no release is missed.
func (s *rawRedisSession) wait(ctx context.Context, key, holder string) error {
	messages := s.client.Subscribe(ctx, key)
	defer messages.Close() //nolint:errcheck // nothing is read any more
	if _, err := messages.Receive(ctx); err != nil {
		return err
	}
	for {
		if set, err := s.set(ctx, key, holder); err != nil || set {
			return err
		}
		if _, err := messages.ReceiveMessage(ctx); err != nil {
			return err
		}
	}
}
