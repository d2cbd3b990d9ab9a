//go:build interop

package spring_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/internal/test/golden"
)

// vectors is the file with Java's LOCK_KEYs, for machines without Java.
const vectors = "../../../testdata/spring_keys.tsv"

// TestKeys maps many keys in Java and in Go. The flag -update writes the vectors.
func TestKeys(t *testing.T) {
	for _, generation := range []javaclient.Generation{javaclient.Spring6, javaclient.Spring7} {
		t.Run(string(generation), func(t *testing.T) {
			keys := allKeys()
			lockKeys, err := shared(t, generation).LockKeys(patiently(t), keys...)
			must(t, err)
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

// TestTheEmptyKey checks the only key that Java accepts and sqllock refuses.
func TestTheEmptyKey(t *testing.T) {
	t.Parallel()
	lockKeys, err := shared(t, javaclient.Spring7).LockKeys(patiently(t), "")
	must(t, err)
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

// allKeys returns different keys, the same ones in each run.
func allKeys() (keys []string) {
	seen := make(map[string]bool)
	for _, some := range [][]string{numberedKeys(), uuidKeys(), almostUUIDs, blankKeys(), unicodeKeys, hostileKeys, longKeys(), randomKeys()} {
		for _, key := range some {
			if !seen[key] {
				keys = append(keys, key)
			}
			seen[key] = true
		}
	}
	return keys
}

func numberedKeys() (keys []string) {
	for i := range 100 {
		keys = append(keys, fmt.Sprintf("orders/%d", i))
	}
	return keys
}

// uuidKeys are mapped to themselves in lower case.
func uuidKeys() (keys []string) {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same at each run
	for range 50 {
		text := fmt.Sprintf("%016x%016x", random.Uint64(), random.Uint64())
		lower := strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
		keys = append(keys, lower, strings.ToUpper(lower), strings.ToUpper(lower[:18])+lower[18:])
	}
	return append(keys,
		"00000000-0000-0000-0000-000000000000",
		"ffffffff-ffff-ffff-ffff-ffffffffffff",
		"FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF")
}

// almostUUIDs are hashed, although java.util.UUID.fromString accepts some of them.
var almostUUIDs = []string{
	"1-2-3-4-5", "0-0-0-0-0", "a-b-c-d-e", "123-4-5-6-7",
	"7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3", "7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3bb",
	"7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3g", "7b0a2f5c_3c57_4f43_9e7c_0b0f6d1f2a3b",
	"7b0a2f5c3c574f439e7c0b0f6d1f2a3b", "7b0a2f5c-3c57-4f43-9e7c", "7b0a2f5c-3c574f43-9e7c-0b0f6d1f2a3b",
	"{7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b}", "urn:uuid:7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b",
	" 7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b", "7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b ",
	"7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b\n", "\n7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b",
	"7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b\r\n", "7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b\u2028",
	"7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b\x00", "x7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b",
	"７b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b", "٧b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b", // digits that are not ASCII
	"7b0a2f5c‐3c57‐4f43‐9e7c‐0b0f6d1f2a3b", "7b0a2f5c–3c57–4f43–9e7c–0b0f6d1f2a3b", // other hyphens
	"-7b0a2f5-3c57-4f43-9e7c-0b0f6d1f2a3b", "+7b0a2f5-3c57-4f43-9e7c-0b0f6d1f2a3b", "----", "-----",
}

// blankKeys consist of white space and invisible characters.
func blankKeys() (keys []string) {
	for _, blank := range []string{
		" ", "\t", "\n", "\r", "\v", "\f", "\u0085", "\u00a0", "\u1680", "\u2000", "\u2003", "\u2028",
		"\u2029", "\u202f", "\u205f", "\u3000", "\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad",
	} {
		keys = append(keys, blank, blank+blank, "a"+blank, blank+"a", "a"+blank+"b")
	}
	for control := range 0x20 {
		keys = append(keys, string(rune(control)))
	}
	return append(keys, "\x7f", "a", "A", "0", "-", "null", "NULL", "true", "{}", `""`)
}

var unicodeKeys = []string{
	"é", "e\u0301", "É", "ñ", "ß", "ẞ", "ss", "ı", "I", "İ", "i", "ς", "σ", "Σ", "ﬁ", "Å", "Å", "K", "K",
	"ключ", "КЛЮЧ", "κλειδί", "מפתח", "مفتاح", "कुंजी", "சாவி", "กุญแจ", "鍵", "钥匙", "열쇠", "かぎ", "カギ", "ｶｷﾞ", "կոճակ", "გასაღები",
	"Schlüssel", "Schlu\u0308ssel", "clé", "klíč", "nøkkel", "anahtar", "chìa khóa", "đơn hàng/42", "Заказ №42",
	"😀", "😀😀", "a😀b", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "👍🏽", "𝒜", "𝟘", "𐍈", "𠮷", "🀄", "\U0001F511 key",
	"\U00010000", "\U0010FFFF", "\U000E0001", "\uD7FF", "\uE000", "\uFFFD", "\uFFFE", "\uFFFF", "\u0080", "\u07FF", "\u0800",
	"\u202Eabc", "a\u0300\u0301\u0302", "￼", "１２３", "Ⅷ", "½", "∞", "€", "¥", "•",
}

// hostileKeys contain characters that some layer could interpret.
var hostileKeys = []string{
	"a+b", "a%20b", "a%b", "%", "%%", "%00", "a&b=c", "a?b", "a#b", "a/b", "a\\b", "\\", "\\n", "\\u0041", "a\tb", "a\nb", "a\r\nb",
	"'", "''", `"`, "`", "';DROP TABLE INT_LOCK;--", "?", "$1", ":name", "{0}", "${key}", "#{key}", "<key>", "a,b", "a;b", "a:b", "a|b", "a\x00b",
	"orders/42 ", " orders/42", "Orders/42", "ORDERS/42", "orders//42", "orders/42/", "orders\\42", "a\u2028b", "[1,2]", "0x1F", "1e3", "-0", "NaN",
}

// longKeys are about as long as the column, or longer.
func longKeys() (keys []string) {
	for _, length := range []int{2, 31, 32, 33, 35, 36, 37, 55, 56, 63, 64, 65, 100, 255, 256, 1000} {
		keys = append(keys, strings.Repeat("k", length), strings.Repeat("é", length), strings.Repeat("😀", length/2))
	}
	return append(keys, strings.Repeat("0123456789abcdef", 256))
}

// randomKeys consist of random Unicode characters.
func randomKeys() (keys []string) {
	random := rand.New(rand.NewPCG(2, 2)) //nolint:gosec // the same at each run
	for range 150 {
		runes := make([]rune, 1+random.IntN(24))
		for i := range runes {
			runes[i] = randomRune(random)
		}
		keys = append(keys, string(runes))
	}
	return keys
}

// randomRune returns a rune of one to four bytes in UTF-8, each with the same probability.
func randomRune(random *rand.Rand) rune {
	bounds := [...]int32{1, 0x80, 0x800, 0xD800, 0x110000}
	which := random.IntN(4)
	low, high := bounds[which], bounds[which+1]
	if which == 3 {
		low = 0x10000 // skip the surrogates, which are not characters
	}
	return low + random.Int32N(high-low)
}
