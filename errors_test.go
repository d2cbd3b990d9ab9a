package sqllock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// A minimum hold is told of while it lasts: a row that is free was released, and mostly had none.
func TestHeldError_MinHold(t *testing.T) {
	t.Parallel()
	for left, lasts := range map[time.Duration]bool{0: false, time.Second: true} {
		err := &sqllock.HeldError{Key: "k", Holder: "web-1:7-ka3f9c52e11", Left: left}
		if text := err.Error(); strings.Contains(text, "minimum hold") != lasts {
			t.Error(text)
		}
	}
}
