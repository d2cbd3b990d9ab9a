package simulation

import (
	"slices"
	"sync"

	"github.com/sqllock/sqllock/internal/sqltext"
)

// wakers is the Waker of all processes that have one. Wake-ups come late, or not at all, even in
// worlds without faults: waiters must poll.
type wakers struct {
	world *World

	mu            sync.Mutex
	subscriptions []subscription
}

type subscription struct {
	topic string
	wake  chan struct{}
}

// Watch implements sqllock.Waker.
func (k *wakers) Watch(topic string) (wake <-chan struct{}, stop func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := subscription{topic, make(chan struct{}, 1)}
	k.subscriptions = append(k.subscriptions, s)
	return s.wake, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.subscriptions = slices.DeleteFunc(k.subscriptions, func(other subscription) bool { return other.wake == s.wake })
	}
}

// deleted wakes those that wait for a row that was deleted.
func (k *wakers) deleted(lockKey string) {
	names, err := sqltext.NamesFor("")
	if err != nil {
		panic(err) // the default prefix is a good one
	}
	topic := names.Topic("DEFAULT", lockKey)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.subscriptions {
		if s.topic != topic || k.world.random.chance(0.2) {
			continue
		}
		k.world.after(k.world.random.latency(&k.world.plan), func() {
			select {
			case s.wake <- struct{}{}:
			default:
			}
		})
	}
}

// left returns how many subscriptions there are.
func (k *wakers) left() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.subscriptions)
}
