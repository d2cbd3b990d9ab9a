// Package show has the subcommands that show and remove rows of the lock table: list,
// show, leader, unlock, cleanup and key.
package show

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
)

// Show returns the subcommand show.
func Show(flags *connect.Flags) *cobra.Command {
	var asJSON bool
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show who holds a lock",
		Long: `Show who holds a lock, since when, and for how much longer. The state of the lock is
held, expired (the next process that tries acquires it) or free. The exit code is 0
in all three cases.

A LOCK_KEY printed by list can be used as KEY.`,
		Example: `  sqllock show orders/42
  test "$(sqllock show --json orders/42 | jq -r .state)" = held`,
		Args:              args.Exactly("KEY"),
		ValidArgsFunction: complete.Keys(flags),
		RunE: func(cmd *cobra.Command, given []string) error {
			return flags.WithRepository(cmd.Context(), ttl, func(r *sqllock.Repository) error {
				row, ok, err := r.Peek(cmd.Context(), given[0])
				if err != nil {
					return err
				}
				state.RememberKey(given[0])
				if ok {
					printTTL(cmd, r, ttl)
				}
				return writeShown(cmd.OutOrStdout(), viewOfKey(flags, r, given[0], row, ok), asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	connect.AddTTL(cmd, &ttl)
	return cmd
}

// viewOfKey returns the view of a key whose row may not exist.
func viewOfKey(flags *connect.Flags, r *sqllock.Repository, key string, row sqllock.Row, ok bool) rowView {
	if ok {
		return viewOf(row, state.Keys(key))
	}
	lockKey, _ := r.LockKey(key) // Peek has mapped it before
	return rowView{Key: &key, LockKey: lockKey, Region: flags.Region, State: stateFree}
}

func writeShown(w io.Writer, v rowView, asJSON bool) error {
	if asJSON {
		return format.JSON(w, v)
	}
	text := fmt.Sprintf("key        %s\nlock key   %s\nregion     %s\nstate      %s\n",
		v.keyText(), format.Printable(v.LockKey), format.Printable(v.Region), v.State)
	if v.Holder != nil {
		text += fmt.Sprintf("holder     %s\nacquired   %s ago\ntime left  %s\n", v.holderText(), format.Duration(v.age), v.leftText())
	}
	_, err := io.WriteString(w, text)
	return err
}
