package locktable

import (
	"strings"
	"testing"
	"unicode"
)

func TestNames_AsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"orders/42":                  "orders/42",
		"ends in a blank ":           "ends in a blank ",
		"'quoted'":                   "'quoted'",
		`"quoted"`:                   `"\"quoted\""`,
		`C:\jobs`:                    `C:\jobs`,
		`{"host":"web-7"}`:           `{"host":"web-7"}`,
		"ü\x00\xff":                  `"\u00fc\x00\xff"`,
		strings.Repeat("a", 1000):    strings.Repeat("a", 1000),
		strings.Repeat("a", 1001):    strings.Repeat("a", 997) + "...",
		strings.Repeat("🔒", 10000):   `"` + strings.Repeat(`\U0001f512`, 99) + `..."`,
		strings.Repeat("\x80", 5000): `"` + strings.Repeat(`\x80`, 248) + `..."`,
	} {
		got := encodeName(name)
		if got != want || strings.ContainsFunc(got, func(c rune) bool { return c > unicode.MaxASCII || unicode.IsControl(c) }) {
			t.Errorf("%.40q is written as %s, want %s", name, got, want)
		}
		if back := decodeName(got); back != name && !strings.HasPrefix(name, strings.TrimSuffix(back, "...")) {
			t.Errorf("%.40q is read as %.40q", name, back)
		}
	}
}

func TestNames_ClientID(t *testing.T) {
	t.Parallel()
	random := []byte{0, 1, 2, 3, 25, 26, 31, 32, 33, 255, 64, 5}
	for _, c := range []struct {
		host string
		pid  int
		want string
	}{
		{"web-7", 4711, "web-7:4711:abcdz27ab7af"},
		{"web-7.example.com", 4711, "web-7:4711:abcdz27ab7af"},
		{"orders-6d4cf56db6-x7k2p", 1, "db6-x7k2p:1:abcdz27ab7af"},
		{"orders-x7k2p", 4194304, "k2p:4194304:abcdz27ab7af"},
		{"a-b", 4194304, "a-b:4194304:abcdz27ab7af"},
		{"büro 3", 7, "bro3:7:abcdz27ab7af"},
		{"", 7, "7:abcdz27ab7af"},
	} {
		if got := newClientID(c.host, c.pid, random); got != c.want || len(got) > MaxClientID {
			t.Errorf("%q, %d: %q, want %q", c.host, c.pid, got, c.want)
		}
	}
	for holder, want := range map[string]string{
		"web-7:4711:abcdz27ab7af-0123456789a":  "web-7:4711:abcdz27ab7af",
		"app-k123456789a":                      "app",
		"5f8b2c1e-0000-4000-8000-123456789abc": "", // Spring's
		"-0123456789a":                         "",
		"":                                     "",
	} {
		if got := ClientOf(holder); got != want {
			t.Errorf("%s: client %q, want %q", holder, got, want)
		}
	}
}
