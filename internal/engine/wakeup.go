package engine

import (
	"context"
	"time"
)

// A waker wakes callers that wait for a lock when it is released. It is that of package sqllock.
type waker interface {
	Watch(topic string) (wake <-chan struct{}, stop func())
}

// A subscription is what a waiter has of a waker. Without one it is never woken.
type subscription struct {
	topic string
	wake  <-chan struct{}
	stop  func()
}

// subscribe subscribes to a topic, instead of another one. It returns false if there is no waker,
// or it has subscribed to that topic before.
func (s *subscription) subscribe(w waker, topic string) bool {
	if w == nil || s.stop != nil && s.topic == topic {
		return false
	}
	s.unsubscribe()
	s.topic = topic
	s.wake, s.stop = w.Watch(topic)
	return true
}

func (s *subscription) unsubscribe() {
	if s.stop != nil {
		s.stop()
	}
	s.wake, s.stop = nil, nil
}

// wait waits for d or a wake-up. ok is false if ctx ended first.
func (s *subscription) wait(ctx context.Context, d time.Duration) (woken, ok bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.wake:
		woken = true
	case <-ctx.Done():
	}
	return woken, ctx.Err() == nil
}
