package exit

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sqllock/sqllock/internal/printable"
)

// Report prints an error on one line, and its hint on the next. hint is used if the
// error carries none; it may be "".
func Report(w io.Writer, err error, hint string) {
	var exit *Error
	if errors.As(err, &exit) && exit.Err == nil {
		return
	}
	if own := Hint(err); own != "" {
		hint = own
	}
	text := fmt.Sprintf("sqllock: %s\n", Text(err))
	if hint != "" {
		text += fmt.Sprintf("try: %s\n", printable.Line(hint))
	}
	_, _ = io.WriteString(w, text) // an error here cannot be reported anywhere
}

// Text returns the text of an error on one line, safe for a terminal. The name that the library's errors
// begin with is left out.
func Text(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	for i, line := range lines { // errors.Join writes one error a line
		lines[i] = strings.TrimPrefix(line, "sqllock: ")
	}
	return printable.Line(strings.Join(lines, "; "))
}
