// Package doctor is the subcommand doctor: it checks that locks work in a database.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/rights"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/monitor/page"
)

// Command returns the subcommand.
func Command(flags *connect.Flags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that locks work in a database",
		Long: `Check that locks work in a database: the connection, the server, whether it accepts
writes, the table, the version of its schema, the clocks, a lock that is acquired and
released, and settings that matter only for this kind of database: those of a cluster or
of replication, and what a crash of the server forgets.

Each line begins with ✓ (good), ! (a note) or ✗ (broken). The line after a problem
says what to do about it. The exit code is 1 if something is broken, else 0. The
command uses a key of its own and does not touch other locks. --json prints JSON.`,
		Example: `  sqllock doctor
  sqllock doctor --dsn postgres://app:secret@db.example.com/app`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := examine(cmd.Context(), flags)
			if err != nil {
				return err
			}
			return writeFindings(cmd.OutOrStdout(), findings, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	flags.AddNoFencing(cmd.Flags())
	return cmd
}

// examine connects and runs all checks. It returns an error for bad input and after an
// interrupt; a problem of the database is a finding.
func examine(ctx context.Context, flags *connect.Flags) ([]finding, error) {
	began := time.Now()
	c, err := flags.Connect(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && exit.CodeOf(err) == exit.Usage:
		return nil, err
	case err != nil:
		advice := cmp.Or(connect.Hint(err), connectionAdvice)
		return []finding{{broken, "connection", strings.Replace(exit.Text(err), ": "+advice, "", 1), advice}}, nil
	}
	defer c.Close()
	names, err := sqltext.NamesFor(flags.Prefix)
	if err != nil {
		return nil, err // Connect has checked it
	}
	findings := []finding{{good, "connection", fmt.Sprintf("%s, answered after %s", c.Name, roundTime(time.Since(began))), ""}}
	e := &examination{Connection: c, flags: flags, names: names, statements: sqltext.Of(c.Dialect).Statements(dialect.Spring7, names)}
	findings = append(findings, e.run(ctx, []step{
		(*examination).checkServer, (*examination).checkHosts, (*examination).checkSession, (*examination).checkPool, (*examination).checkPooler,
		(*examination).checkWrites,
		(*examination).checkCluster, (*examination).checkDurability, (*examination).checkSnapshots, (*examination).checkTable, (*examination).checkTriggers, (*examination).checkFence,
		(*examination).checkNames, (*examination).checkSchema, (*examination).checkClock, (*examination).checkTimes, (*examination).checkRoundTrip, (*examination).checkJournal,
	})...)
	return findings, context.Cause(ctx)
}

// A step is one check. It returns what it finds: something wrong, or nothing, if the context ends it.
type step func(*examination, context.Context) []finding

const (
	// checkLimit is more than any statement of a check takes on a server that answers.
	checkLimit = 10 * time.Second
	// pingLimit is more than a server takes that answers at all.
	pingLimit = 5 * time.Second
)

// run takes steps until the server does not answer any more. A step that takes too long does not show that: it may
// wait for a table that is locked, or for a second session of a pooler.
func (e *examination) run(ctx context.Context, steps []step) (findings []finding) {
	for i, take := range steps {
		found, late := e.inTime(ctx, take)
		findings = append(findings, found...)
		if late && i < len(steps)-1 && !e.answers(ctx) {
			return append(findings, finding{broken, "connection", "the server does not answer any more: the checks that follow were not made", "check the server and the network to it, and run this again"})
		}
	}
	return findings
}

// inTime takes a step, which a server that hangs must not keep forever. It reports whether the step took too long.
func (e *examination) inTime(ctx context.Context, take step) (found []finding, late bool) {
	limited, cancel := context.WithTimeoutCause(ctx, checkLimit, fmt.Errorf("no answer for %v", checkLimit))
	defer cancel()
	found = take(e, limited)
	return found, limited.Err() != nil && ctx.Err() == nil
}

// answers reports whether the server answers, or the user has ended the command.
func (e *examination) answers(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	return e.DB.PingContext(limited) == nil || ctx.Err() != nil
}

const connectionAdvice = "check that the server runs and that host, port, database, user and password in --dsn or $" + connect.DSNVariable + " are correct"

// An examination has what the checks share: a database that answers, and its lock
// table.
type examination struct {
	*connect.Connection
	flags      *connect.Flags
	names      sqltext.Names
	statements sqltext.Statements
	exists     bool                // whether the table does
	repository *sqllock.Repository // nil if the table is not usable
	engine     probe.Engine        // what checkServer has read
	cluster    probe.Cluster       // what checkCluster has read
}

// adviceOr returns the advice for the cause of an error, if that is known, or another.
func adviceOr(err error, otherwise string) string {
	cure := failure.CureOf(err)
	if cure == nil || slices.Contains(cure.Signs, missingRight) {
		return otherwise
	}
	return cure.Text
}

// textOf returns the text of an error without the advice in it.
func textOf(err error) string {
	text := exit.Text(err)
	if cure := failure.CureOf(err); cure != nil {
		text = strings.Replace(text, ": "+cure.Text, "", 1)
	}
	return text
}

// missingRight is a sign of errors for which a check knows which right is missing.
const missingRight = "42501"

// rightsAdvice is the advice for a user who may lack a right.
func (e *examination) rightsAdvice() string {
	return "check that the user may SELECT, INSERT, UPDATE and DELETE in " + e.names.Lock + ", and use " + e.names.Fence
}

// grant returns the statement that gives this user the rights of an application on a table or sequence, or on the
// schema if on is "". It returns "" if it does not know one.
func (e *examination) grant(ctx context.Context, on string) string {
	user := rights.Self(ctx, e.SQL())
	if user == "" {
		return ""
	}
	grants, _ := rights.Grants(ctx, e.SQL(), e.Dialect, e.names, rights.Application, user) // none with an error
	if at := slices.IndexFunc(grants, func(g rights.Grant) bool { return g.On == on }); at >= 0 {
		return grants[at].Text
	}
	return ""
}

// rightAdvice is the advice about an error of a statement on a table: the statement that grants the right which is
// missing, or that which the error has, or another.
func (e *examination) rightAdvice(ctx context.Context, err error, table, otherwise string) string {
	if cure := failure.CureOf(err); cure != nil && slices.Contains(cure.Signs, missingRight) {
		on := table
		if strings.Contains(err.Error(), "for schema") {
			on = ""
		}
		if statement := e.grant(ctx, on); statement != "" {
			return statement
		}
	}
	return adviceOr(err, otherwise)
}

// Findings returns the checks of the command as package page shows them.
func Findings(flags *connect.Flags) func(context.Context) ([]page.Finding, error) {
	return func(ctx context.Context) ([]page.Finding, error) {
		findings, err := examine(ctx, flags)
		shown := make([]page.Finding, len(findings))
		for i, f := range findings {
			shown[i] = page.Finding(f)
		}
		return shown, err
	}
}
