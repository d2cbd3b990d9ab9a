package trial

import (
	"context"
	_ "embed" // for the help
	"errors"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

//go:embed verify.txt
var verifyHelp string

// Limits of verify's options. A shorter lease would end when the host is busy.
const (
	minVerifyTTL = 2 * time.Second
	minFor       = time.Second
	perNode      = 2 // processes
	minWorkers   = 4
)

// Verify returns the subcommand verify.
func Verify(flags *connect.Flags) *cobra.Command {
	var nodes []string
	var lasting time.Duration
	o := &options{flags: flags, verify: true}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check with processes of its own that a database keeps the promises of locks",
		Long:  verifyHelp,
		Example: `  sqllock verify --dsn postgres://user:password@localhost/test
  sqllock verify --dsn postgres://user:password@node1/test --dsn postgres://user:password@node2/test`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case slices.Contains(nodes, ""):
				return exit.Usagef("--dsn: the DSN is empty: set the variable that it comes from")
			case o.ttl < minVerifyTTL:
				return exit.Usagef("--ttl %v: it must be at least %v", o.ttl, minVerifyTTL)
			case lasting < minFor:
				return exit.Usagef("--for %v: it must be at least %v", lasting, minFor)
			}
			o.out, o.workers = cmd.OutOrStdout(), max(minWorkers, perNode*len(nodes))
			return verify(cmd.Context(), o, nodes, lasting)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&nodes, "dsn", nil, "the database; once for each node of a cluster")
	f.DurationVar(&o.ttl, "ttl", 5*time.Second, "time-to-live of the leases")
	f.DurationVar(&lasting, "for", 90*time.Second, "how long the processes contend for the lock")
	return cmd
}

func verify(ctx context.Context, o *options, nodes []string, lasting time.Duration) (err error) {
	signal.Ignore(syscall.SIGPIPE) // the tables must be dropped
	flags := *o.flags
	flags.Unverified = true
	if len(nodes) > 0 {
		flags.DSN = nodes[0]
	}
	w, err := newWorkspace(ctx, &flags, "VERIFY", &o.ttl)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	v := &verification{options: o, workspace: w, crew: newCrew()}
	defer v.close()
	if err := v.conduct(ctx, nodes, lasting); err != nil {
		return err
	}
	return v.report()
}
