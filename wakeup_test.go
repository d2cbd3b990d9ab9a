package sqllock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// never is a pause that outlasts every test: whoever gets on was woken.
const never = time.Hour

// A ringer is a Waker that rings when the test wants it to.
type ringer struct {
	mu      sync.Mutex
	topics  []string
	bells   map[chan struct{}]bool
	onWatch func() // runs before a subscription is made
}

func (r *ringer) Watch(topic string) (<-chan struct{}, func()) {
	if r.onWatch != nil {
		r.onWatch()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bells == nil {
		r.bells = make(map[chan struct{}]bool)
	}
	bell := make(chan struct{}, 1)
	r.topics, r.bells[bell] = append(r.topics, topic), true
	return bell, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.bells[bell] {
			panic("stopped twice")
		}
		delete(r.bells, bell)
	}
}

// ring rings for all, and waits until all have heard.
func (r *ringer) ring() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for bell := range r.bells {
		bell <- struct{}{}
	}
}

// seen returns all topics so far, and how many subscriptions there are.
func (r *ringer) seen() (topics []string, bells int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.topics, len(r.bells)
}

// TestAReleaseBeforeTheSubscriptionIsFound releases after the waiter's try, and before it
// has subscribed: nothing will ring.
func TestAReleaseBeforeTheSubscriptionIsFound(t *testing.T) {
	t.Parallel()
	db, waker := migrated(t), &ringer{}
	lease, err := obtain(t, newRegistry(t, newRepository(t, db.DB, nil), nil), "k").Lock(t.Context())
	must(t, err)
	waker.onWatch = func() { must(t, lease.Unlock(t.Context())) }
	waiting := newRegistry(t, newRepository(t, db.DB, nil), &sqllock.RegistryOptions{IdleBetweenTries: never, TTL: never, Waker: waker})
	got, err := obtain(t, waiting, "k").TryLockFor(t.Context(), 30*time.Second)
	must(t, err)
	must(t, got.Unlock(t.Context()))
	if _, bells := waker.seen(); bells != 0 {
		t.Errorf("%d subscriptions stay", bells)
	}
}

// TestAWaiterSubscribesOnce rings for nothing a few times: the waiter tries, and waits on.
func TestAWaiterSubscribesOnce(t *testing.T) {
	t.Parallel()
	db, waker := migrated(t), &ringer{}
	repository := newRepository(t, db.DB, &sqllock.RepositoryOptions{Region: "r", Prefix: "int_"})
	lease, err := obtain(t, newRegistry(t, repository, &sqllock.RegistryOptions{TTL: never}), "k").Lock(t.Context())
	must(t, err)
	waiting := newRegistry(t, repository, &sqllock.RegistryOptions{IdleBetweenTries: never, TTL: never, Waker: waker})
	ctx, cancel := context.WithCancel(t.Context())
	waker.onWatch = func() {
		go func() {
			for range 5 {
				waker.ring()
			}
			cancel()
		}()
	}
	if _, err := obtain(t, waiting, "k").Lock(ctx); !errors.Is(err, sqllock.ErrNotAcquired) {
		t.Fatal(err)
	}
	names, err := dialect.NamesFor("INT_")
	must(t, err)
	key, err := repository.LockKey("k")
	must(t, err)
	topics, bells := waker.seen()
	if len(topics) != 1 || topics[0] != names.Topic("r", key) {
		t.Errorf("watched %q", topics)
	}
	if bells != 0 {
		t.Errorf("%d subscriptions stay", bells)
	}
	must(t, lease.Unlock(t.Context()))
}

// TestWhoNeedNotWaitSubscribesToNothing spares a lock that is free the subscription.
func TestWhoNeedNotWaitSubscribesToNothing(t *testing.T) {
	t.Parallel()
	waker := &ringer{}
	registry := newRegistry(t, newRepository(t, migrated(t).DB, nil), &sqllock.RegistryOptions{Waker: waker})
	lease, err := obtain(t, registry, "k").Lock(t.Context())
	must(t, err)
	if _, err := obtain(t, registry, "k").TryLock(t.Context()); !errors.Is(err, sqllock.ErrNotAcquired) {
		t.Fatal(err)
	}
	must(t, lease.Unlock(t.Context()))
	if topics, _ := waker.seen(); len(topics) != 0 {
		t.Errorf("watched %q", topics)
	}
}
