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

// Lock is Spring's lock(). It waits without a limit, even after ctx has ended.
func (t *Thread) Lock(ctx context.Context, key string) error {
	_, err := t.call(ctx, "lock", key)
	return err
}

// TryLock is Spring's tryLock(wait).
func (t *Thread) TryLock(ctx context.Context, key string, wait time.Duration) (bool, error) {
	return boolean(t.call(ctx, "trylock", key, millis(wait)))
}

// TryLockKept is Spring's tryLock() of a handle that the client obtains at the first call for a key, and keeps. All
// other methods obtain a handle at each call.
func (t *Thread) TryLockKept(ctx context.Context, key string) (bool, error) {
	return boolean(t.call(ctx, "trykept", key))
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

// Hold renews a lock of the thread repeatedly for a time, and returns the number of renewals.
func (t *Thread) Hold(ctx context.Context, key string, duration, pause time.Duration) (int, error) {
	values, err := t.call(ctx, "hold", key, millis(duration), millis(pause))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(values[0])
}

// Count increments the counter in the table COUNTER, under the lock of the key, until it has
// reached the goal. It returns how often this thread has incremented it, and how often another
// thread or process was in the critical section at the same time.
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
