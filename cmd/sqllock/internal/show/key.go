package show

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
)

// Key returns the subcommand key.
func Key(flags *connect.Flags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
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
		ValidArgsFunction: complete.UsedKeys,
		RunE: func(cmd *cobra.Command, names []string) error {
			mapped := make([]mappedKey, len(names))
			for i, name := range names {
				lockKey, err := flags.Keys()(name)
				if err != nil {
					return err
				}
				mapped[i] = mappedKey{name, lockKey}
			}
			for _, m := range mapped {
				state.RememberKey(m.Key)
			}
			return writeMapped(cmd.OutOrStdout(), mapped, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// A mappedKey is a key and what the table has for it. Its JSON form is documented in docs/cli.md.
type mappedKey struct {
	Key     string `json:"key"`
	LockKey string `json:"lock_key"`
}

func writeMapped(w io.Writer, mapped []mappedKey, asJSON bool) error {
	if asJSON {
		return format.JSON(w, mapped)
	}
	for _, m := range mapped {
		if _, err := fmt.Fprintln(w, m.LockKey); err != nil {
			return err
		}
	}
	return nil
}
