package exec

import (
	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
)

// Lead returns the subcommand lead. It handles signals itself.
func Lead(flags *connect.Flags) *cobra.Command {
	x := &execution{flags: flags, suspend: process.StopSelf}
	cmd := &cobra.Command{
		Use:   "lead [flags] ROLE -- CMD ARGS…",
		Short: "Run a command while this process leads",
		Long: `Campaign for a role, run a command while this process leads, and campaign again. At
most one process leads a role. The lease is renewed while the command runs, and is
released when the command has ended.

If the lease is lost, the command gets SIGTERM and, after the grace period, SIGKILL.
If the command ends with 0, others lead first. SIGINT and SIGTERM are forwarded to
the command, and end lead when the command has ended; other signals are forwarded.

The exit code is that of the command if it was not 0 or a signal has ended lead,
128+n if signal n came while another process was the leader, or:

  64   the command line is wrong; nothing was done
  69   database error at the start (later ones are printed, and lead tries again)
  76   the lease was lost while lead waited for the command to end after a signal
  126  the command was found but cannot be run
  127  the command was not found

The command gets these environment variables:

  SQLLOCK_KEY       ROLE, and SQLLOCK_KEYS as well
  SQLLOCK_TOKEN     the fencing token: a number that is higher for each later leader
  SQLLOCK_DEADLINE  when the lease ends unless it is renewed (RFC 3339, UTC)

The database must be given: --local elects among the processes of this machine.

If lead itself is killed, a watchdog kills the command and all processes that it has
started. lead itself prints only errors and warnings, unless --verbose is given.`,
		Example: `  sqllock lead scheduler -- ./scheduler
  sqllock lead --client-id 10.12.13.14:8080 web -- ./server`,
		Args:              nameAndCommand("ROLE", "scheduler -- ./scheduler"),
		ValidArgsFunction: complete.KeyAndCommand(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			x.key, x.command = split(cmd, args)
			x.stdin, x.stdout, x.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			if x.clientID == "" {
				x.clientID = clientID()
			}
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
	f.DurationVar(&x.ttl, "ttl", defaultTTL, "time-to-live: how long the role stays taken if this process or its host dies")
	f.DurationVar(&x.grace, "grace", defaultGrace, "time between SIGTERM and SIGKILL when the lease is lost")
	f.StringVar(&x.clientID, "client-id", "", "what the command leader prints for this process, such as a host and a port (default: host name and process ID)")
	f.BoolVarP(&x.verbose, "verbose", "v", false, "print who leads")
	return cmd
}
