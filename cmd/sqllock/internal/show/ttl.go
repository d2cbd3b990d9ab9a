package show

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// printTTL prints the time-to-live by which the command has decided what has expired, if
// the table does not contain it and the user has not given one.
func printTTL(cmd *cobra.Command, r *sqllock.Repository, ttl time.Duration) {
	if r.Layout() == dialect.Spring6 && !cmd.Flags().Changed("ttl") {
		cmd.PrintErrf("sqllock: the table has no EXPIRED_AFTER: the time left assumes a time-to-live of %v; use --ttl for another\n", ttl)
	}
}
