// Package doctor is the subcommand doctor: it checks that locks work in a database.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/locktable"
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
	names, err := dialect.NamesFor(flags.Prefix)
	if err != nil {
		return nil, err // Connect has checked it
	}
	findings := []finding{{good, "connection", fmt.Sprintf("%s, answered after %s", c.Name, roundTime(time.Since(began))), ""}}
	e := &examination{Connection: c, flags: flags, names: names, statements: c.Dialect.Statements(dialect.Spring7, names)}
	for _, check := range []func(*examination, context.Context) []finding{
		(*examination).checkServer, (*examination).checkHosts, (*examination).checkSession, (*examination).checkPool, (*examination).checkPooler,
		(*examination).checkWrites,
		(*examination).checkCluster, (*examination).checkDurability, (*examination).checkTable, (*examination).checkTriggers, (*examination).checkFence,
		(*examination).checkNames, (*examination).checkSchema, (*examination).checkClock, (*examination).checkRoundTrip, (*examination).checkKind,
	} {
		findings = append(findings, check(e, ctx)...)
	}
	return findings, errors.Join(context.Cause(ctx), c.Close())
}

const connectionAdvice = "check that the server runs and that host, port, database, user and password in --dsn or $" + connect.DSNVariable + " are correct"

// checkKind runs the checks for one kind of database.
func (e *examination) checkKind(ctx context.Context) []finding {
	switch e.Dialect.Name {
	case "mysql":
		return e.checkColumns(ctx)
	case "sqlite":
		return e.checkJournal(ctx)
	default:
		return nil
	}
}

// An examination has what the checks share: a database that answers, and its lock
// table.
type examination struct {
	*connect.Connection
	flags      *connect.Flags
	names      dialect.Names
	statements dialect.Statements
	repository *sqllock.Repository // nil if the table is not usable
	engine     locktable.Engine    // what checkServer has read
	cluster    locktable.Cluster   // what checkCluster has read
}

// rightsAdvice is the advice for a user who may lack a right.
func (e *examination) rightsAdvice() string {
	return "check that the user may SELECT, INSERT, UPDATE and DELETE in " + e.names.Lock + ", and use " + e.names.Fence
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
