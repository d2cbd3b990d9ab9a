package names

import (
	"strings"
	"testing"
	"unicode"
)

func TestText_AsItIsWritten(t *testing.T) {
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
		got := encode(name)
		if got != want || strings.ContainsFunc(got, func(c rune) bool { return c > unicode.MaxASCII || unicode.IsControl(c) }) {
			t.Errorf("%.40q is written as %s, want %s", name, got, want)
		}
		if back := decode(got); back != name && !strings.HasPrefix(name, strings.TrimSuffix(back, "...")) {
			t.Errorf("%.40q is read as %.40q", name, back)
		}
	}
}
