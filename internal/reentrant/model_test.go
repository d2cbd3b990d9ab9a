package reentrant_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/sqllock/sqllock/internal/reentrant"
)

// A model is a simple implementation of the mutex without waiting: its owner, the depth and
// the queue of waiters.
type model struct {
	owner, depth int
	queue        []int
}

func (m *model) lock(o int) {
	switch {
	case m.owner == o && m.depth > 0:
		m.depth++
	case m.owner == 0:
		m.owner, m.depth = o, 1
	default:
		m.queue = append(m.queue, o)
	}
}

func (m *model) leave(o int) {
	if m.owner == o && m.depth > 0 {
		m.depth--
	}
}

func (m *model) release(o int) {
	if m.owner != o {
		return
	}
	m.owner, m.depth = 0, 0
	if len(m.queue) > 0 {
		m.owner, m.depth, m.queue = m.queue[0], 1, m.queue[1:]
	}
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
	var actual reentrant.Mutex[int]
	var naive model
	cancels := make(map[int]context.CancelFunc)
	for range 200 {
		o := 1 + random.IntN(5)
		switch action := random.IntN(5); action {
		case 0, 1:
			if slices.Contains(naive.queue, o) || naive.owner == o && naive.depth == 0 {
				continue // a caller waits at most once, and not for itself
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancels[o] = cancel
			naive.lock(o)
			go func() { _, _ = actual.Lock(ctx, o) }()
		case 2:
			naive.leave(o)
			actual.Leave(o)
		case 3:
			naive.release(o)
			actual.Release(o)
		case 4:
			if cancel := cancels[o]; cancel != nil && slices.Contains(naive.queue, o) {
				naive.cancel(o)
				cancel()
			}
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
