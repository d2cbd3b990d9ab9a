package sqllock_test

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/sqllock/sqllock"
)

// TestWaiting counts callers that wait, behind another process and behind a lease of their own.
func TestWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		if _, err := s.repository.Acquire(t.Context(), "other", s.repository.NewHolder(), ttl); err != nil {
			t.Fatal(err)
		}
		lease, err := s.registry.Lock(t.Context(), "mine")
		must(t, err)
		done := make(chan error)
		for _, key := range []string{"mine", "other", "other"} {
			go func() {
				waited, err := s.registry.Lock(t.Context(), key)
				if err == nil {
					err = waited.Unlock(t.Context())
				}
				done <- err
			}()
		}
		synctest.Wait()
		if got, want := s.registry.Waiting(), map[string]int{"mine": 1, "other": 2}; !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		must(t, lease.Unlock(t.Context()))
		for range 3 {
			must(t, <-done)
		}
		if got := s.registry.Waiting(); len(got) != 0 {
			t.Errorf("%v wait", got)
		}
	})
}
