package jitter_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

func TestNIsBelowItsLimit(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 1000 {
		n := jitter.N(3 * time.Nanosecond)
		if n < 0 || n > 2 {
			t.Fatal(n)
		}
		seen[n] = true
	}
	if len(seen) != 3 {
		t.Errorf("only %v of 3 numbers", seen)
	}
}

func TestReplaceYield(t *testing.T) {
	yielded := 0
	restore := jitter.ReplaceYield(func() { yielded++ })
	jitter.Yield()
	restore()
	jitter.Yield()
	if yielded != 1 {
		t.Errorf("yielded %d times, not once", yielded)
	}
}
