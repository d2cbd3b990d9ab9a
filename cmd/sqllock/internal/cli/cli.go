// Package cli is the command sqllock. docs/cli.md describes it.
package cli

import (
	"context"
	_ "embed"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/doctor"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exec"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/leasefile"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/migrate"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/page"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/show"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/top"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/trial"
)

//go:embed help.txt
var help string

// Main is the main function of the program.
func Main() {
	exec.RunHelper()
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs a command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, end := context.WithCancel(ctx)
	defer end()
	return execute(ctx, Command(), args, stdin, stdout, stderr) //nolint:contextcheck // commands get theirs from cobra
}

// execute runs a command line by a tree of commands.
func execute(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	completeWithoutPackage(root)
	report, err := exit.Report, checkDashes(root, args)
	if err == nil {
		var cmd *cobra.Command
		cmd, err = root.ExecuteContextC(ctx)
		err = withInterrupt(cmd, err) //nolint:contextcheck // it asks for that of the command
		if holdsALock(cmd) {
			report = exec.Report
		}
	}
	if err != nil {
		report(stderr, err, connect.Hint(err))
	}
	return exit.CodeOf(err)
}

// checkDashes is [exec.CheckDashes] for a command line of exec or lead.
func checkDashes(root *cobra.Command, args []string) error {
	cmd, words, err := root.Find(args)
	if err != nil || !runsCommand(cmd) {
		return nil //nolint:nilerr // cobra reports it
	}
	return exec.CheckDashes(cmd, words)
}

// Command returns the tree of commands.
func Command() *cobra.Command {
	var flags connect.Flags
	root := &cobra.Command{
		Use:   "sqllock COMMAND",
		Short: "Distributed locks in the SQL database you already have",
		Long:  help,
		Example: `  sqllock demo
  sqllock exec nightly-report -- ./report.sh
  sqllock list`,
		Args:          args.NoneButCommands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true, // run reports them
		SilenceUsage:  true,
		Version:       currentBuild().String(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			endOnSignals(cmd)
			return checkDSNs(cmd)
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	// Few arguments are files; exec says where.
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.WithHint(exit.Usagef("%w", withoutDSN(err)), "%s", flagHint(cmd, err))
	})
	flags.Register(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("region", complete.Regions(&flags)) // the flag exists
	root.AddCommand(
		exec.Command(&flags), exec.Lead(&flags),
		exec.Acquire(&flags), leasefile.Extend(&flags), leasefile.Release(&flags), leasefile.RenewerCommand(&flags), trial.Demo(&flags), trial.Verify(&flags), trial.WorkerCommand(&flags),
		show.List(&flags), show.Describe(&flags), show.Jobs(&flags), show.Unlock(&flags), show.Cleanup(&flags), show.Key(&flags), show.Leader(&flags),
		top.Command(&flags), page.Command(&flags, doctor.Findings(&flags)),
		migrate.Command(&flags), doctor.Command(&flags), newVersionCommand(),
	)
	acceptSeconds(root)
	return root
}
