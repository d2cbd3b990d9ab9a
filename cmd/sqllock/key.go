package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newKeyCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "key NAME...",
		Short: "Print the LOCK_KEY that a key has in the table",
		Long: `Print the LOCK_KEY that a key has in the table, one a line, without asking the
database. By default this is Spring's mapping: a key in UUID form is kept in
lower case, any other becomes the UUID (version 3) of the MD5 sum of its bytes.

The keys are remembered, so that list can name their rows.`,
		Example: `  sqllock key orders/42
  psql -c "SELECT * FROM int_lock WHERE lock_key = '$(sqllock key orders/42)'"`,
		Args: func(cmd *cobra.Command, args []string) error {
			return exactly("NAME")(cmd, args[:min(1, len(args))]) // at least one
		},
		RunE: func(cmd *cobra.Command, names []string) error {
			for _, name := range names {
				lockKey, err := g.keys()(name)
				if err != nil {
					return err
				}
				rememberName(name)
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), lockKey); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
