// Package printable makes text of the lock table safe to show.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns text that is safe for a terminal, for a page, and for a script that splits at
// tabs and lines. A table can contain any text; if it has control characters, or others that
// change the direction of the text beside them, the result is quoted.
func Text(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
