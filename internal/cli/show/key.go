package show

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/internal/cli/args"
	"github.com/sqllock/sqllock/internal/cli/connect"
	"github.com/sqllock/sqllock/internal/cli/state"
)

// Key returns the subcommand key.
func Key(flags *connect.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "key NAME...",
		Short: "Print the LOCK_KEY that a key has in the table",
		Long: `Print the LOCK_KEY that a key has in the table, one a line. No database is needed.
By default this is Spring's mapping: a key in UUID form is converted to lower case,
and any other key to the UUID (version 3) of the MD5 sum of its bytes.

The keys are remembered, so that list can show them.`,
		Example: `  sqllock key orders/42
  psql -c "SELECT * FROM int_lock WHERE lock_key = '$(sqllock key orders/42)'"`,
		Args: func(cmd *cobra.Command, given []string) error {
			return args.Exactly("NAME")(cmd, given[:min(1, len(given))]) // at least one
		},
		RunE: func(cmd *cobra.Command, names []string) error {
			for _, name := range names {
				lockKey, err := flags.Keys()(name)
				if err != nil {
					return err
				}
				state.RememberKey(name)
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), lockKey); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
