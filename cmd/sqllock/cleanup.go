package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

func newCleanupCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove the expired rows of the region, once",
		Long: `Remove the expired rows of the region, once, and say how many there were. An
expired row is no trouble: whoever wants the lock takes it over. This is for keys
that nobody asks for again, and fits a cron job.

In a table without EXPIRED_AFTER (Spring Integration before 7) only those who
use the locks know their time-to-live, so --ttl must be given there: one that is
shorter than theirs would remove locks in use.`,
		Example: `  sqllock cleanup
  sqllock cleanup --region billing --ttl 1m`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.withRepository(cmd.Context(), func(_ *connection, r *sqllock.Repository) error {
				if r.Layout() == dialect.Spring6 && !cmd.Flags().Changed("ttl") {
					return withHint(usageError("the table has no EXPIRED_AFTER: --ttl must say how long the locks of its users live"),
						"sqllock cleanup --ttl 1m, with the longest time-to-live in use")
				}
				n, err := r.DeleteExpired(cmd.Context(), g.ttl)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "removed %s of region %s\n", counted(n, "expired row"), printable(g.region))
				return err
			})
		},
	}
	g.addTTLFlag(cmd)
	return cmd
}

// counted is a number with its noun.
func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
