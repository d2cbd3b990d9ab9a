package lru_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/lru"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

func TestEvictUnusedSince(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := lru.New[string, int](9)
		for _, key := range []string{"pinned", "old", "used"} {
			c.Add(key)
		}
		c.Pin("pinned")
		time.Sleep(time.Second)
		c.Get("used")
		c.Add("new")
		if n := c.EvictUnusedSince(time.Now().Add(-time.Second)); n != 1 || c.Get("old") != nil {
			t.Fatal(n)
		}
		if n := c.EvictUnusedSince(time.Now()); n != 2 || c.Len() != 1 {
			t.Fatal(n, c.Len())
		}
		c.Unpin("pinned") // this is its last use
		if n := c.EvictUnusedSince(time.Now().Add(-time.Nanosecond)); n != 0 {
			t.Fatal(n)
		}
		if n := c.EvictUnusedSince(time.Now()); n != 1 || c.Len() != 0 {
			t.Fatal(n, c.Len())
		}
	})
}

// A model is the cache as a list of keys, the least recently used first.
type model struct {
	capacity int
	unused   []int
	pins     map[int]int
}

func (m *model) len() int { return len(m.unused) + len(m.pins) }

func (m *model) has(key int) bool { return m.pins[key] > 0 || slices.Contains(m.unused, key) }

func (m *model) remove(key int) {
	m.unused = slices.DeleteFunc(m.unused, func(k int) bool { return k == key })
}

func (m *model) evictTo(n int) {
	for m.len() > n && len(m.unused) > 0 {
		m.unused = m.unused[1:]
	}
}

// TestModel does random things to the cache and to the model, and compares them: which values are there, and
// that none is added beside pinned ones that fill the capacity.
func TestModel(t *testing.T) {
	t.Parallel()
	seeds := uint64(50)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 0))
		c := lru.New[int, int](5)
		m := model{capacity: 5, pins: make(map[int]int)}
		for range 500 {
			key := random.IntN(10)
			switch there := m.has(key); random.IntN(5) {
			case 0, 1:
				get(t, c, &m, key)
			case 2:
				if there {
					c.Pin(key)
					m.remove(key)
					m.pins[key]++
				}
			case 3:
				if m.pins[key] > 0 {
					c.Unpin(key)
					if m.pins[key]--; m.pins[key] == 0 {
						delete(m.pins, key)
						m.unused = append(m.unused, key)
						m.evictTo(m.capacity)
					}
				}
			case 4:
				m.capacity = random.IntN(9)
				m.evictTo(m.capacity)
				c.SetCapacity(m.capacity)
			}
			if c.Len() != m.len() || c.Capacity() != m.capacity {
				t.Fatalf("seed %d: %d values of %d, want %d of %d", seed, c.Len(), c.Capacity(), m.len(), m.capacity)
			}
		}
	}
}

// get gets key or adds it.
func get(t *testing.T, c *lru.Cache[int, int], m *model, key int) {
	t.Helper()
	value := c.Get(key)
	if (value != nil) != m.has(key) || value != nil && *value != key {
		t.Fatalf("got %v for %d", value, key)
	}
	if value == nil {
		m.evictTo(m.capacity - 1)
		value = c.Add(key)
		if (value != nil) != (m.len() < m.capacity) {
			t.Fatalf("added %d beside %d of %d", key, m.len(), m.capacity)
		}
		if value == nil {
			return
		}
		*value = key
	}
	if m.pins[key] == 0 {
		m.remove(key)
		m.unused = append(m.unused, key)
	}
}
