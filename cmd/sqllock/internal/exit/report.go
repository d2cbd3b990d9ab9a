package exit

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/printable"
)

// Report prints an error on one line, and its hint on the next. If a cure stands in the first line of the error's text, it gives way
// to the hint, and what follows that line, the driver's text, is on a third. hint is used if the error carries none; it may be "".
func Report(w io.Writer, err error, hint string) {
	if err = audible(err); err == nil {
		return
	}
	if own := Hint(err); own != "" {
		hint = own
	}
	cure := hint
	if known := failure.CureOf(err); known != nil {
		cure = known.Text
	}
	first, rest, cured := strings.Cut(err.Error(), ": "+cure+"\n")
	if !cured {
		first = err.Error()
	}
	text := fmt.Sprintf("sqllock: %s\n", line(first))
	if hint != "" {
		text += fmt.Sprintf("try: %s\n", printable.Line(hint))
	}
	if cured {
		text += fmt.Sprintf("driver: %s\n", line(rest))
	}
	_, _ = io.WriteString(w, text) // an error here cannot be reported anywhere
}

// audible returns err without those errors without text that were joined with others, or nil if nothing is left.
func audible(err error) error {
	if HasText(err) {
		return err
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var rest []error
	for _, one := range joined.Unwrap() {
		rest = append(rest, audible(one))
	}
	return errors.Join(rest...)
}

// Text returns the text of an error on one line, safe for a terminal. The name that the library's errors
// begin with is left out.
func Text(err error) string { return line(err.Error()) }

func line(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i, line := range lines { // errors.Join writes one error a line
		lines[i] = strings.TrimPrefix(strings.TrimSpace(line), "sqllock: ")
	}
	return printable.Line(strings.Join(lines, "; "))
}
