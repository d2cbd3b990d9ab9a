package sqllock

import (
	"context"
	"time"
)

// A Waker tells waiters that a lock was released, so that they need not wait for
// their next look at it. It is a help and no promise: what it does not tell is found
// by looking, every [RegistryOptions.IdleBetweenTries].
//
// Package notify has one for PostgreSQL. One Waker serves any number of registries.
// All methods must be safe for concurrent use.
type Waker interface {
	// Watch subscribes to a topic, which stands for the row of one lock (see
	// dialect.Names.Topic). After it has returned, wake gets a value for what is
	// released; a value that was not received yet stands for all that followed,
	// and one may come for nothing. Watch must not block. wake is never closed.
	//
	// stop ends the subscription. It is called once.
	Watch(topic string) (wake <-chan struct{}, stop func())
}

// A bell is what one waiter subscribes to while it waits. Without a Waker it never
// rings.
type bell struct {
	hold *hold // of the waiter
	wake <-chan struct{}
	stop func()
}

// hang subscribes. It returns false if there is nothing to subscribe to, or it did so
// before.
func (b *bell) hang() bool {
	r := b.hold.registry
	if r.waker == nil || b.stop != nil {
		return false
	}
	b.wake, b.stop = r.waker.Watch(r.repository.names.Topic(r.repository.region, b.hold.lockKey))
	return true
}

// wait waits for d or until it rings. ok is false if ctx ended first.
func (b *bell) wait(ctx context.Context, d time.Duration) (rang, ok bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.wake:
		rang = true
	case <-ctx.Done():
	}
	return rang, ctx.Err() == nil
}

func (b *bell) hangUp() {
	if b.stop != nil {
		b.stop()
	}
}
