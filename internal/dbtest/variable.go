package dbtest

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// variable returns an environment variable that leads to a server. Without it
// the test is skipped at a desk and fails in CI.
func variable(tb testing.TB, name string) string {
	tb.Helper()
	value := os.Getenv(name)
	if value != "" {
		return value
	}
	const advice = "go run ./internal/dbtest/cmd/withservers -- go test ./..."
	if os.Getenv("CI") == "true" {
		tb.Fatalf("%s is not set, and CI must test all databases; run: %s", name, advice)
	}
	// The reasons for skips are shown with -v only. This once per test program
	// reaches everyone who runs a single package.
	once, _ := warned.LoadOrStore(name, new(sync.Once))
	once.(*sync.Once).Do(func() {
		fmt.Fprintf(os.Stderr, "*** %s IS NOT SET: TESTS ARE SKIPPED. Run: %s\n", name, advice)
	})
	tb.Skipf("SKIPPED, NOT TESTED: %s is not set; run: %s", name, advice)
	return ""
}

var warned sync.Map // of name to *sync.Once
