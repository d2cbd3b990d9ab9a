package show

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/dialect"
)

// Cleanup returns the subcommand cleanup.
func Cleanup(flags *connect.Flags) *cobra.Command {
	var asJSON bool
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove the expired rows of the region, once",
		Long: `Remove the expired rows of the region, once, and print their number: those of leases
that are over, and those of busy keys that are free (finished, see list). Neither
blocks its lock: the next process that tries acquires it. The command is for keys that
are not used again, and can run as a cron job.

A table without EXPIRED_AFTER (Spring Integration before 7) does not contain the
time-to-live of its locks, so --ttl is required there. A value shorter than that of
the programs that use the locks would remove locks in use.`,
		Example: `  sqllock cleanup
  sqllock cleanup --region billing --ttl 1m`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.WithRepository(cmd.Context(), ttl, func(r *sqllock.Repository) error {
				if r.Layout() == dialect.Spring6 && !cmd.Flags().Changed("ttl") {
					return exit.WithHint(exit.Usagef("the table has no EXPIRED_AFTER: --ttl must give the time-to-live of its locks"),
						"sqllock cleanup --ttl 1m, with the longest time-to-live in use")
				}
				n, err := r.DeleteExpired(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return format.JSON(cmd.OutOrStdout(), cleaned{flags.Region, n})
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "removed %s of region %s, of leases that are over and of busy keys that are free\n", counted(n, "row"), format.Printable(flags.Region))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	connect.AddTTL(cmd, &ttl)
	return cmd
}

// cleaned is what cleanup has done. Its JSON form is documented in docs/cli.md.
type cleaned struct {
	Region  string `json:"region"`
	Removed int64  `json:"removed"`
}

// counted returns a number with its noun.
func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
