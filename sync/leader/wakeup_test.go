package leader_test

import (
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/leader"
)

// A bell is a sqllock.Waker that wakes all waiters when it is rung.
type bell struct {
	mu      sync.Mutex
	waiters map[chan struct{}]bool
}

func (b *bell) Watch(string) (wake <-chan struct{}, stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := make(chan struct{}, 1)
	b.waiters[c] = true
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiters, c)
	}
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.waiters {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// TestAWakeUpMovesTheRoleAtOnce has candidates that poll once an hour.
func TestAWakeUpMovesTheRoleAtOnce(t *testing.T) {
	inBubble(t, func(f *fixture) {
		released := &bell{waiters: make(map[chan struct{}]bool)}
		of := sqllock.RegistryOptions{TTL: 3 * time.Hour, IdleBetweenTries: time.Hour, Waker: released}
		a, b := f.processWith("a", leader.Options{}, of), f.processWith("b", leader.Options{}, of)
		first := a.start(a.lead)
		<-a.began
		b.start(b.lead)
		time.Sleep(10 * time.Second)
		began := time.Now()
		for range 3 {
			f.Must(a.Resign(f.Context()))
			released.ring()
			<-b.began
			time.Sleep(10 * time.Second) // a sees that b leads
			f.Must(b.Resign(f.Context()))
			released.ring()
			<-a.began
			time.Sleep(10 * time.Second)
		}
		f.Is(first.stop(), errStop)
		released.ring()
		<-b.began
		f.Takes("everything", began, time.Minute, time.Minute)
	})
}
