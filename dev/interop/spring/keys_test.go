//go:build interop

package spring_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/golden"
)

// vectors is the file with Java's LOCK_KEYs, for machines without Java.
const vectors = "../../../testdata/spring_keys.tsv"

// TestKeys maps many keys in Java and in Go: those of the file. A new key is a line with the key in JSON and a tab; the flag
// -update writes Java's answers behind them.
func TestKeys(t *testing.T) {
	for _, generation := range []javaclient.Generation{javaclient.Spring6, javaclient.Spring70, javaclient.Spring7} {
		t.Run(string(generation), func(t *testing.T) {
			keys := keysOfTheFile(t)
			lockKeys := check.Value(shared(t, generation).LockKeys(patiently(t), keys...))(t)
			for i, key := range keys {
				if got, err := sqllock.SpringKeys(key); err != nil || got != lockKeys[i] {
					t.Errorf("%q: %q, %v, and Java says %q", key, got, err, lockKeys[i])
				}
			}
			golden.Check(t, vectors, table(t, keys, lockKeys))
			t.Logf("%d keys", len(keys))
		})
	}
}

// keysOfTheFile returns the first column: numbers, UUIDs and what is none, blanks, letters of many languages, what some layer
// could interpret, keys about as long as the column or longer, and random ones.
func keysOfTheFile(t *testing.T) (keys []string) {
	t.Helper()
	text := check.Value(os.ReadFile(vectors))(t)
	for line := range strings.Lines(string(text)) {
		quoted, _, _ := strings.Cut(line, "\t")
		var key string
		must(t, json.Unmarshal([]byte(quoted), &key))
		keys = append(keys, key)
	}
	return keys
}

// TestTheEmptyKey checks the only key that Java accepts and sqllock refuses.
func TestTheEmptyKey(t *testing.T) {
	t.Parallel()
	lockKeys := check.Value(shared(t, javaclient.Spring7).LockKeys(patiently(t), ""))(t)
	if want := "d41d8cd9-8f00-3204-a980-0998ecf8427e"; lockKeys[0] != want {
		t.Errorf("Java maps it to %q, want %q", lockKeys[0], want)
	}
	if lockKey, err := sqllock.SpringKeys(""); !errors.Is(err, sqllock.ErrInvalid) {
		t.Errorf("we map it to %q, %v", lockKey, err)
	}
}

// table returns a line for each key: the key in JSON, a tab, and its LOCK_KEY.
func table(t *testing.T, keys, lockKeys []string) string {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for i, key := range keys {
		must(t, encoder.Encode(key))
		text.Truncate(text.Len() - 1) // the encoder ends the line
		fmt.Fprintf(&text, "\t%s\n", lockKeys[i])
	}
	return text.String()
}
