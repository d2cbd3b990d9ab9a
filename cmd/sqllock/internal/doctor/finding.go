package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
)

// A severity says how bad a finding is.
type severity int

const (
	good severity = iota
	noteworthy
	broken
)

func (s severity) mark() string { return []string{"✓", "!", "✗"}[s] }

// MarshalText implements encoding.TextMarshaler, for JSON.
func (s severity) MarshalText() ([]byte, error) {
	return []byte([]string{"good", "note", "broken"}[s]), nil
}

// A finding is one line of the output, and the advice after it.
type finding struct {
	severity severity
	subject  string
	text     string
	advice   string // "" if there is nothing to do
}

// MarshalJSON implements json.Marshaler. The form is documented in docs/cli.md; fields are only
// ever added.
func (f finding) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Severity severity `json:"severity"`
		Subject  string   `json:"subject"`
		Text     string   `json:"text"`
		Advice   string   `json:"advice,omitempty"`
	}{f.severity, f.subject, f.text, f.advice})
}

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
	worst := good
	for _, f := range findings {
		worst = max(worst, f.severity)
	}
	if worst == broken {
		return &exit.Error{Code: exit.Failure}
	}
	return nil
}

func writeLines(w io.Writer, findings []finding) error {
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "%s %-12s %s\n", f.severity.mark(), f.subject, f.text)
		if f.advice != "" {
			fmt.Fprintf(&text, "  %-12s → %s\n", "", f.advice)
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
