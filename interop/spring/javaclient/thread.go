package javaclient

import (
	"context"
	"strconv"
	"time"
)

// A Thread is a thread of a client. Requests to one thread queue up.
type Thread struct {
	client *Client
	name   string
}

func (t *Thread) call(ctx context.Context, command string, arguments ...string) ([]string, error) {
	return t.client.jvm.call(ctx, t.client.name, t.name, command, arguments...)
}

// Lock is Spring's lock(): it waits for ever, and goes on doing so when ctx has
// ended.
func (t *Thread) Lock(ctx context.Context, key string) error {
	_, err := t.call(ctx, "lock", key)
	return err
}

// TryLock is Spring's tryLock(wait).
func (t *Thread) TryLock(ctx context.Context, key string, wait time.Duration) (bool, error) {
	return boolean(t.call(ctx, "trylock", key, millis(wait)))
}

// Unlock is Spring's unlock().
func (t *Thread) Unlock(ctx context.Context, key string) error {
	_, err := t.call(ctx, "unlock", key)
	return err
}

// Renew is Spring's renewLock(key).
func (t *Thread) Renew(ctx context.Context, key string) error {
	_, err := t.call(ctx, "renew", key)
	return err
}

// Hold renews a lock that the thread has for a time, after each pause, and returns
// how often it did.
func (t *Thread) Hold(ctx context.Context, key string, duration, pause time.Duration) (int, error) {
	values, err := t.call(ctx, "hold", key, millis(duration), millis(pause))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(values[0])
}

// Count adds to the counter in the table COUNTER, under the lock of the key, until
// it has reached the goal. It returns how often this thread added, and how often it
// was not alone.
func (t *Thread) Count(ctx context.Context, key string, goal int) (added, overlaps int, err error) {
	values, err := t.call(ctx, "count", key, strconv.Itoa(goal))
	if err != nil {
		return 0, 0, err
	}
	numbers, err := integers(values, 2)
	if err != nil {
		return 0, 0, err
	}
	return numbers[0], numbers[1], nil
}
