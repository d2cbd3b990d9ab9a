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

// Line returns text with its characters that are not printable escaped, for a message.
func Line(text string) string {
	var line strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\ufffd") {
		if unicode.IsPrint(r) {
			line.WriteRune(r)
		} else {
			line.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return line.String()
}
