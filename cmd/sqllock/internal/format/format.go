// Package format writes durations and text for people and JSON for scripts, and finds the width of a terminal.
package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"golang.org/x/term"

	"github.com/sqllock/sqllock/internal/printable"
)

// Duration returns a duration with at most two units.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 2*day:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	default:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
}

// Waiters returns how many callers wait and for how long, as "3 for 45s", or "" if none does.
func Waiters(callers int, longest time.Duration) string {
	if callers == 0 {
		return ""
	}
	return fmt.Sprintf("%d for %s", callers, Duration(longest))
}

// Printable returns text that is safe for a terminal and for a script that splits at
// tabs and lines. A table can contain any text; if it has control characters, the
// result is quoted.
func Printable(text string) string { return printable.Text(text) }

// JSON writes a value as indented JSON that is safe for a terminal: a character that is not printable is
// escaped, which means the same.
func JSON(w io.Writer, value any) error { return writeJSON(w, value, "  ") }

// JSONLine is [JSON] on one line.
func JSONLine(w io.Writer, value any) error { return writeJSON(w, value, "") }

func writeJSON(w io.Writer, value any, indent string) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	var safe bytes.Buffer
	for _, r := range text.String() {
		if unicode.IsPrint(r) || r == '\n' {
			safe.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&safe, `\u%04x`, unit)
		}
	}
	_, err := safe.WriteTo(w)
	return err
}

// TerminalWidth returns the number of columns of w, and reports whether w is a
// terminal.
func TerminalWidth(w io.Writer) (width int, ok bool) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return width, true
}
