package registry_test

import (
	"runtime/debug"
	"testing"

	"github.com/sqllock/sqllock/internal/test/testmain"
)

// TestMain checks that no test leaves a goroutine behind.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // saves a sixth of the time
	testmain.Run(m)
}
