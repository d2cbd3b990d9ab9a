package dbtest

import (
	"crypto/rand"
	"strings"
	"testing"
)

// uniqueName returns an identifier that needs no quotes in any database. It contains the
// name of the test, to show which failed test has left it.
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
