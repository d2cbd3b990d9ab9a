package sqllock_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
)

// TestSpringKeysAsJavaMapsThem has vectors that Spring's own jar has made. They are
// written by TestKeys in interop/spring.
func TestSpringKeysAsJavaMapsThem(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/spring_keys.tsv")
	must(t, err)
	keys := 0
	for line := range strings.Lines(string(text)) {
		quoted, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		var key string
		if err := json.Unmarshal([]byte(quoted), &key); err != nil || !ok {
			t.Fatalf("line %q: %v", line, err)
		}
		if got, err := sqllock.SpringKeys(key); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", key, got, err, want)
		}
		keys++
	}
	if keys < 500 {
		t.Errorf("only %d keys", keys)
	}
}
