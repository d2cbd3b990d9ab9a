package sqllock_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/testmain"
)

// TestMain checks that no test leaves a goroutine behind.
func TestMain(m *testing.M) {
	testmain.Run(m)
}
