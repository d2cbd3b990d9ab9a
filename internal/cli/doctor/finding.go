package doctor

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/cli/exit"
)

// A severity says how bad a finding is.
type severity int

const (
	good severity = iota
	noteworthy
	broken
)

func (s severity) mark() string { return []string{"✓", "!", "✗"}[s] }

// A finding is one line of the output, and the advice after it.
type finding struct {
	severity severity
	subject  string
	text     string
	advice   string // "" if there is nothing to do
}

// writeFindings prints the findings. It returns an error without text if something is
// broken.
func writeFindings(w io.Writer, findings []finding) error {
	worst := good
	var text strings.Builder
	for _, f := range findings {
		worst = max(worst, f.severity)
		fmt.Fprintf(&text, "%s %-12s %s\n", f.severity.mark(), f.subject, f.text)
		if f.advice != "" {
			fmt.Fprintf(&text, "  %-12s → %s\n", "", f.advice)
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return err
	}
	if worst == broken {
		return &exit.Error{Code: exit.Failure}
	}
	return nil
}

// roundTime rounds a measured time.
func roundTime(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
