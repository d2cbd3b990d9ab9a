package dbtest

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// An isolation is the part of a server that one test uses.
type isolation struct {
	driver, dsn string
	create      string
	drop        []string // run on one connection
	name        string   // its kind and its name, for messages
}

// isolate creates the test's part of the server. It is dropped after the test's pools have been closed, or kept if
// the test fails.
func isolate(tb testing.TB, part isolation) {
	tb.Helper()
	if err := server.Execute(tb.Context(), part.driver, part.dsn, part.create); err != nil {
		tb.Fatalf("create %s: %v", part.name, err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the failed test's %s stays on %s", part.name, part.dsn)
			return
		}
		// The test's context has ended. The timeout detects a test that has left a transaction open.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 3*time.Minute)
		defer cancel()
		if err := server.Execute(ctx, part.driver, part.dsn, part.drop...); err != nil {
			tb.Errorf("drop %s (does something still use it?): %v", part.name, err)
		}
	})
}

// uniqueName returns an identifier that needs no quotes in any database. It contains the name of the test, to show
// which failed test has left it.
func uniqueName(tb testing.TB) string {
	tb.Helper()
	const longest = 40 // of the 63 bytes that PostgreSQL allows
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '_'
		}
	}, tb.Name())
	random := strings.ToLower(rand.Text()[:10])
	return "t_" + random + "_" + readable[:min(len(readable), longest)]
}
