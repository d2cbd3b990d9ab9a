package fair_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/sqllock/sqllock/internal/fair"
)

// A model is a simple implementation of the mutex without waiting: its owner and the queue of waiters.
type model struct {
	owner int
	queue []int
}

func (m *model) lock(o int) {
	if !m.tryLock(o) {
		m.queue = append(m.queue, o)
	}
}

func (m *model) tryLock(o int) bool {
	if m.owner != 0 {
		return false
	}
	m.owner = o
	return true
}

func (m *model) release(o int) bool {
	if m.owner != o {
		return false
	}
	m.owner = 0
	if len(m.queue) > 0 {
		m.owner, m.queue = m.queue[0], m.queue[1:]
	}
	return true
}

func (m *model) cancel(o int) {
	m.queue = slices.DeleteFunc(m.queue, func(w int) bool { return w == o })
}

// TestModel performs random operations on the mutex and on the model, and compares them.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			compareWithModel(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func compareWithModel(t *testing.T, random *rand.Rand) {
	t.Helper()
	var actual fair.Mutex[int]
	var naive model
	cancels := make(map[int]context.CancelFunc)
	for range 200 {
		o := 1 + random.IntN(5)
		var got, want bool
		switch action := random.IntN(5); action {
		case 0, 1:
			if slices.Contains(naive.queue, o) || naive.owner == o {
				continue // a caller waits at most once, and not for itself
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancels[o] = cancel
			naive.lock(o)
			go func() { _ = actual.Lock(ctx, o) }()
		case 2:
			want, got = naive.release(o), actual.Release(o)
		case 3:
			if cancel := cancels[o]; cancel != nil && slices.Contains(naive.queue, o) {
				naive.cancel(o)
				cancel()
			}
		case 4:
			want, got = naive.tryLock(o), actual.TryLock(o)
		}
		if got != want {
			t.Fatalf("got %t, want %t of %+v", got, want, naive)
		}
		synctest.Wait()
		if actual.Owner() != naive.owner || actual.Waiters() != len(naive.queue) {
			t.Fatalf("owner %d, %d waiters, want %+v", actual.Owner(), actual.Waiters(), naive)
		}
	}
	for _, cancel := range cancels {
		cancel()
	}
	synctest.Wait()
}
