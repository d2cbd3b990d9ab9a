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

func (m *model) enter(o int) (depth int, ok bool) {
	if m.owner != o || m.depth == 0 {
		return 0, false
	}
	m.depth++
	return m.depth, true
}

func (m *model) tryLock(o int) (depth int, ok bool) {
	if m.owner == 0 {
		m.owner, m.depth = o, 1
		return 1, true
	}
	return m.enter(o)
}

func (m *model) leave(o int) (depth int, ok bool) {
	if m.owner != o || m.depth == 0 {
		return 0, false
	}
	m.depth--
	return m.depth, true
}

func (m *model) release(o int) bool {
	if m.owner != o {
		return false
	}
	m.owner, m.depth = 0, 0
	if len(m.queue) > 0 {
		m.owner, m.depth, m.queue = m.queue[0], 1, m.queue[1:]
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

// An answer is what a call that does not wait returns.
type answer struct {
	depth int
	ok    bool
}

func compareWithModel(t *testing.T, random *rand.Rand) {
	t.Helper()
	var actual reentrant.Mutex[int]
	var naive model
	cancels := make(map[int]context.CancelFunc)
	for range 200 {
		o := 1 + random.IntN(5)
		var got, want answer
		switch action := random.IntN(7); action {
		case 0, 1:
			if slices.Contains(naive.queue, o) || naive.owner == o && naive.depth == 0 {
				continue // a caller waits at most once, and not for itself
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancels[o] = cancel
			naive.lock(o)
			go func() { _, _ = actual.Lock(ctx, o) }()
		case 2:
			want.depth, want.ok = naive.leave(o)
			got.depth, got.ok = actual.Leave(o)
		case 3:
			want.ok = naive.release(o)
			got.ok = actual.Release(o)
		case 4:
			if cancel := cancels[o]; cancel != nil && slices.Contains(naive.queue, o) {
				naive.cancel(o)
				cancel()
			}
		case 5:
			want.depth, want.ok = naive.tryLock(o)
			got.depth, got.ok = actual.TryLock(o)
		case 6:
			want.depth, want.ok = naive.enter(o)
			got.depth, got.ok = actual.Enter(o)
		}
		if got != want {
			t.Fatalf("got %+v, want %+v of %+v", got, want, naive)
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
