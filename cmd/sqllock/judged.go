package main

import (
	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// noteJudgedBy tells which time-to-live decided what has expired, where the
// table does not say it itself and the user has not chosen one.
func (g *globals) noteJudgedBy(cmd *cobra.Command, r *sqllock.Repository) {
	if r.Layout() == dialect.Spring6 && !cmd.Flags().Changed("ttl") {
		cmd.PrintErrf("sqllock: the table has no EXPIRED_AFTER: time left is counted with a time-to-live of %v; --ttl gives another\n", g.ttl)
	}
}
