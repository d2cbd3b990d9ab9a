package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

func newDoctorCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check that locks work in a database, and say what to do if not",
		Long: `Check that locks work in a database, and say what to do if not: the connection,
the server, whether it accepts writes, the table, the version of its schema, the
clocks, a lock taken and released, and what is peculiar to the database.

Each line begins with ✓ (fine), ! (worth knowing) or ✗ (broken). The exit code is 1
if something is broken, else 0. A scratch key is used; other locks are not touched.`,
		Example: `  sqllock doctor
  sqllock doctor --dsn postgres://app:secret@db.example.com/app`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := g.examine(cmd.Context())
			if err != nil {
				return err
			}
			return writeFindings(cmd.OutOrStdout(), findings)
		},
	}
}

// A severity says how bad a finding is.
type severity int

const (
	fine severity = iota
	noteworthy
	broken
)

func (s severity) mark() string { return []string{"✓", "!", "✗"}[s] }

// A finding is one line of the doctor's, and what to do about it.
type finding struct {
	severity severity
	subject  string
	text     string
	advice   string // "" if there is nothing to do
}

// A patient is a database that answers. repository is nil if its table is not
// usable.
type patient struct {
	*connection
	g          *globals
	names      dialect.Names
	texts      dialect.Statements
	repository *sqllock.Repository
}

// examine connects and runs all checks. The error is that of bad input or of an
// interrupt; what is wrong with the database is a finding.
func (g *globals) examine(ctx context.Context) ([]finding, error) {
	began := time.Now()
	c, err := g.connect(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && codeOf(err) == exitUsage:
		return nil, err
	case err != nil:
		return []finding{{broken, "connection", findingText(err), cmp.Or(hintFor(err), connectionAdvice)}}, nil
	}
	names, err := dialect.NamesFor(g.prefix)
	if err != nil {
		return nil, err // connect has looked at it before
	}
	findings := []finding{{fine, "connection", fmt.Sprintf("%s, answered after %s", c.Name, brief(time.Since(began))), ""}}
	p := &patient{connection: c, g: g, names: names, texts: c.Dialect.Statements(dialect.Spring7, names)}
	for _, check := range []func(*patient, context.Context) []finding{
		(*patient).checkServer, (*patient).checkWrites, (*patient).checkTable, (*patient).checkFence, (*patient).checkSchema,
		(*patient).checkClock, (*patient).checkRoundTrip, (*patient).checkPeculiar,
	} {
		findings = append(findings, check(p, ctx)...)
	}
	return findings, errors.Join(ctx.Err(), c.Close())
}

const connectionAdvice = "see that the server runs and that host, port, database, user and password in --dsn or $" + dsnVariable + " are right"

// writeFindings prints the findings, and returns an error without text if
// something is broken.
func writeFindings(w io.Writer, findings []finding) error {
	worst := fine
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
		return &exitError{code: exitFailure}
	}
	return nil
}

// brief rounds a duration that was measured once.
func brief(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// findingText is the text of an error without what a finding says anyway: that
// it is about the database, and what to do.
func findingText(err error) string {
	text := strings.TrimSuffix(textOf(err), libraryHint)
	return strings.TrimPrefix(text, "database trouble: ")
}
