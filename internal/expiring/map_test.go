package expiring_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/expiring"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// put sets the value of key for d from now.
func put(m *expiring.Map[string, int], key string, value int, d time.Duration) {
	m.Put(key, time.Now().Add(d), func(int) int { return value })
}

func want(t *testing.T, m *expiring.Map[string, int], key string, value int, there bool) {
	t.Helper()
	if got, ok := m.Get(key); got != value || ok != there {
		t.Errorf("%s: %d, %v, want %d, %v", key, got, ok, value, there)
	}
}

func TestAValueLastsUntilItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m expiring.Map[string, int]
		want(t, &m, "a", 0, false)
		put(&m, "a", 1, time.Second)
		put(&m, "b", 2, time.Minute)
		time.Sleep(time.Second - 1)
		want(t, &m, "a", 1, true)
		time.Sleep(time.Nanosecond)
		want(t, &m, "a", 0, false)
		want(t, &m, "b", 2, true)
		check.Equal(t, "keys", m.Len(), 1)
		if got, ok := m.Take("b"); got != 2 || !ok {
			t.Error(got, ok)
		}
		want(t, &m, "b", 0, false)
		if got, ok := m.Take("b"); got != 0 || ok {
			t.Error(got, ok)
		}
	})
}

// An entry expires even if the entry before it lasts longer.
func TestAnEntryBehindOneThatLastsLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m expiring.Map[string, int]
		put(&m, "long", 1, time.Hour)
		put(&m, "short", 2, time.Second)
		put(&m, "short too", 3, time.Second)
		time.Sleep(time.Second)
		want(t, &m, "short", 0, false)
		if got, ok := m.Take("short too"); ok {
			t.Error(got)
		}
		check.Same(t, "keys", m.Keys(), []string{"long"})
		time.Sleep(time.Hour)
		if keys := m.Keys(); len(keys) != 0 || m.Len() != 0 {
			t.Error(keys, m.Len())
		}
	})
}

// A changed value lasts until the later one of the two times.
func TestAChangedValue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m expiring.Map[string, int]
		put(&m, "an older one", 0, 24*time.Hour)
		add := func(n int, d time.Duration) {
			m.Put("a", time.Now().Add(d), func(before int) int { return before + n })
		}
		add(1, time.Minute)
		add(2, time.Second)
		want(t, &m, "a", 3, true)
		time.Sleep(time.Second)
		want(t, &m, "a", 3, true)
		add(4, time.Hour)
		time.Sleep(time.Hour - 1)
		want(t, &m, "a", 7, true)
		time.Sleep(time.Nanosecond)
		add(8, time.Second) // change does not get an expired value
		want(t, &m, "a", 8, true)
	})
}

func TestThereAreAtMostMaxKeys(t *testing.T) {
	t.Parallel()
	var m expiring.Map[int, int]
	until := time.Now().Add(time.Hour)
	for i := range expiring.MaxKeys + 10 {
		m.Put(i, until, func(int) int { return i })
	}
	check.Equal(t, "keys", m.Len(), expiring.MaxKeys)
	if _, ok := m.Get(9); ok {
		t.Error("the oldest is kept")
	}
	if got, ok := m.Get(10); got != 10 || !ok {
		t.Error(got, ok)
	}
}
