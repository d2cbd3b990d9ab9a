package printable

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"orders/42": "orders/42", "naïve 鍵": "naïve 鍵", "": "",
		"a\tb": `"a\tb"`, "\x1b[2J": `"\x1b[2J"`, "evil\u202egpj": `"evil\u202egpj"`, "\xff": `"\xff"`,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		if got, want := Line(text), strings.ReplaceAll(strings.Trim(want, `"`), `\xff`, "\ufffd"); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
