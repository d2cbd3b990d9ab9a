package exec

import (
	_ "embed"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
)

//go:embed lead.txt
var leadHelp string

// Lead returns the subcommand lead. It handles signals itself.
func Lead(flags *connect.Flags) *cobra.Command {
	x := &execution{flags: flags, waitForever: true, suspend: process.StopSelf}
	cmd := &cobra.Command{
		Use:   "lead [flags] ROLE [--] CMD ARGS…",
		Short: "Run a command while this process leads",
		Long:  leadHelp,
		Example: `  sqllock lead scheduler -- ./scheduler
  sqllock lead --client-id 10.12.13.14:8080 web -- ./server`,
		Args:              nameAndCommand("ROLE", "scheduler -- ./scheduler"),
		ValidArgsFunction: complete.KeyAndCommand(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			x.key, x.command = split(cmd, args)
			x.ttlGiven = cmd.Flags().Changed("ttl")
			x.stdin, x.stdout, x.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			if err := x.check(); err != nil {
				return err
			}
			if err := flags.CheckChosen(); err != nil {
				return err
			}
			state.RememberKey(x.key)
			return x.lead(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.DurationVar(&x.ttl, "ttl", defaultTTL, ttlHelp("role"))
	f.DurationVar(&x.grace, "grace", defaultGrace, "time between SIGTERM and SIGKILL when the lease is lost")
	f.StringVar(&x.clientID, "client-id", "", "such as a host and a port: "+clientIDHelp)
	flags.AddNoFencing(f)
	f.BoolVar(&x.noNames, "no-names", false, noNamesHelp)
	f.BoolVarP(&x.verbose, "verbose", "v", false, "print who leads")
	return cmd
}
