package top

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A key is a letter, or the name of another key.
type key string

// The keys that are no letters.
const (
	ctrlC     key = "ctrl-c"
	enter     key = "enter"
	escape    key = "escape"
	backspace key = "backspace"
	up        key = "up"
	down      key = "down"
	pageUp    key = "page up"
	pageDown  key = "page down"
	home      key = "home"
	end       key = "end"
	deleteKey key = "delete"
)

// sequences are what terminals send.
var sequences = []struct {
	text string
	key  key
}{
	{"\x1b[A", up},
	{"\x1b[B", down},
	{"\x1bOA", up},
	{"\x1bOB", down},
	{"\x1b[5~", pageUp},
	{"\x1b[6~", pageDown},
	{"\x1b[H", home},
	{"\x1b[F", end},
	{"\x1bOH", home},
	{"\x1bOF", end},
	{"\x1b[1~", home},
	{"\x1b[4~", end},
	{"\x1b[3~", deleteKey},
	{"\x03", ctrlC},
	{"\r", enter},
	{"\n", enter},
	{"\x7f", backspace},
	{"\b", backspace},
}

// isText reports whether a key is a letter that can be typed.
func (k key) isText() bool {
	letter, size := utf8.DecodeRuneInString(string(k))
	return size == len(k) && unicode.IsPrint(letter)
}

// keysOf returns the keys in what a terminal has sent at once. Sequences that have no meaning
// here are left out.
func keysOf(text string) (keys []key) {
next:
	for text != "" {
		for _, s := range sequences {
			if rest, ok := strings.CutPrefix(text, s.text); ok {
				keys, text = append(keys, s.key), rest
				continue next
			}
		}
		if text[0] == '\x1b' {
			rest := strings.TrimLeft(text[1:], "[O0123456789;")
			if len(rest) == len(text)-1 {
				keys, text = append(keys, escape), rest
				continue
			}
			text = rest[min(1, len(rest)):] // an unknown sequence, with its last letter
			continue
		}
		_, size := utf8.DecodeRuneInString(text)
		keys, text = append(keys, key(text[:size])), text[size:]
	}
	return keys
}
