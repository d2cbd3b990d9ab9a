package names

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// longest is the width of NAME, in characters.
const longest = 1000

// encode returns a name as it stands in NAME: as it is if it has printable ASCII alone, else as a string of Go,
// so that every database can keep it and every session reads the same. One that is too long is cut, and ends in three
// dots.
func encode(name string) string {
	text := inASCII(name)
	for end := len(name); len(text) > longest; {
		end = min(end, longest) - 1
		for n := 1; n < utf8.UTFMax && end > 0 && !utf8.RuneStart(name[end]); n++ {
			end--
		}
		text = inASCII(name[:end] + "...")
	}
	return text
}

// Fits reports whether NAME can keep a name that is not cut.
func Fits(name string) bool { return len(inASCII(name)) <= longest }

func inASCII(name string) string {
	isOther := func(r rune) bool { return r < ' ' || r > '~' }
	if strings.HasPrefix(name, `"`) || strings.ContainsFunc(name, isOther) {
		return strconv.QuoteToASCII(name)
	}
	return name
}

// decode is the inverse of encode.
func decode(text string) string {
	if strings.HasPrefix(text, `"`) { // no text that stands as it is does
		if name, err := strconv.Unquote(text); err == nil {
			return name
		}
	}
	return text
}
