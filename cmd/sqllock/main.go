// Command sqllock takes, shows and removes locks in an SQL database, and creates
// the table that they live in. docs/cli.md describes it.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
)

func main() {
	switch {
	case isWatchdog():
		beWatchdog(os.Stdin, os.Stdout)
		return
	case isGate():
		beGate()
		os.Exit(exitCannotRun)
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// ownSignals marks, as a key of its annotations, a command that deals with
// signals itself. For all others an interrupt ends the context.
const ownSignals = "signals"

// run runs the command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	root := newRootCommand(cancel) //nolint:contextcheck // commands get theirs from cobra
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil {
		report(stderr, err)
	}
	return codeOf(err)
}

// globals are the flags every command shares.
type globals struct {
	dsn, prefix, region string
	plainKeys           bool
	ttl                 time.Duration // only where a command has it
}

// newRootCommand builds the tree of commands. interrupted is called once when
// the process is asked to end.
func newRootCommand(interrupted func()) *cobra.Command {
	var g globals
	root := &cobra.Command{
		Use:   "sqllock",
		Short: "Distributed locks in the SQL database you already have",
		Long: `Distributed locks in the SQL database you already have: PostgreSQL, MySQL,
MariaDB or SQLite. The table is that of Spring Integration's JDBC lock
registry, so Java services may share it.

The database is given with --dsn or in SQLLOCK_DSN:

  postgres://user:password@host:5432/database?sslmode=require
  mysql://user:password@host:3306/database        (MariaDB: mariadb://… too)
  user:password@tcp(host:3306)/database           (as the Go driver has it)
  sqlite:/path/to/locks.db

Without it, locks live in an SQLite file of your own on this machine.`,
		Example: `  sqllock demo
  sqllock exec nightly-report -- ./report.sh
  sqllock list`,
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true, // run reports them
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			endOnSignals(cmd, interrupted)
			return restoreDefaultTTL(cmd)
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return withHint(usageError("%w", err), "%s", flagHint(cmd, err))
	})
	flags := root.PersistentFlags()
	flags.StringVar(&g.dsn, "dsn", "", "the database (default: $"+dsnVariable+", else a local SQLite file)")
	flags.StringVar(&g.prefix, "prefix", sqllock.DefaultPrefix, "what stands before LOCK in the name of the table")
	flags.StringVar(&g.region, "region", sqllock.DefaultRegion, "the region that keys belong to")
	flags.BoolVar(&g.plainKeys, "plain-keys", false, "keep keys as they are in LOCK_KEY, instead of Spring's mapping")
	root.AddCommand(
		newExecCommand(&g), newDemoCommand(&g), newDemoWorkerCommand(&g),
		newListCommand(&g), newShowCommand(&g), newUnlockCommand(&g), newCleanupCommand(&g), newKeyCommand(&g),
		newMigrateCommand(&g), newDoctorCommand(&g), newVersionCommand(),
	)
	return root
}

// addTTLFlag gives a command the flag by which it judges tables that have no
// EXPIRED_AFTER.
func (g *globals) addTTLFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&g.ttl, "ttl", sqllock.DefaultTTL,
		"time-to-live of the locks, needed only for a table without EXPIRED_AFTER")
}

// endOnSignals calls interrupted when the process is asked to end, so that the
// command can clean up.
func endOnSignals(cmd *cobra.Command, interrupted func()) {
	if _, own := cmd.Annotations[ownSignals]; own {
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // the next one kills
		interrupted()
	}()
}

// restoreDefaultTTL gives globals.ttl the default of the command that runs: all
// commands that have the flag share the variable, so it holds that of the last.
func restoreDefaultTTL(cmd *cobra.Command) error {
	flag := cmd.Flags().Lookup("ttl")
	if flag == nil || flag.Changed {
		return nil
	}
	return flag.Value.Set(flag.DefValue)
}

// noSuchCommand refuses arguments of a command that has only commands below it.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := usageError("%q is not a command of %s", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		return withHint(err, "%s %s", cmd.CommandPath(), strings.Join(similar, ", "))
	}
	return withHint(err, "%s --help", cmd.CommandPath())
}

// exactly wants the arguments that names describes, no more and no fewer.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return withHint(usageError("%s: %s is missing", cmd.CommandPath(), names[len(args)]), "%s --help", cmd.CommandPath())
		case len(args) > len(names):
			return withHint(usageError("%s: %q is one argument too many", cmd.CommandPath(), args[len(names)]), "%s --help", cmd.CommandPath())
		}
		return nil
	}
}
