package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/monitor/page"
)

// A finding is one line of the output, and the advice after it. Its JSON form is documented in docs/cli.md; fields are
// only ever added.
type finding page.Finding

const (
	good       = page.Good
	noteworthy = page.Note
	broken     = page.Broken
)

// marks are what the lines begin with.
var marks = map[page.Severity]string{good: "✓", noteworthy: "!", broken: "✗"}

// writeFindings prints the findings. It returns an error without text if something is
// broken.
func writeFindings(w io.Writer, findings []finding, asJSON bool) error {
	write := writeLines
	if asJSON {
		write = writeJSON
	}
	if err := write(w, findings); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f finding) bool { return f.Severity == broken }) {
		return &exit.Error{Code: exit.Failure}
	}
	return nil
}

func writeLines(w io.Writer, findings []finding) error {
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "%s %-12s %s\n", marks[f.Severity], f.Subject, f.Text)
		if f.Advice != "" {
			fmt.Fprintf(&text, "  %-12s → %s\n", "", f.Advice)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func writeJSON(w io.Writer, findings []finding) error {
	return format.JSON(w, append([]finding{}, findings...)) // none are [], not null
}

// roundTime rounds a measured time.
func roundTime(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
