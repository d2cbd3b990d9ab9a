package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
)

func newShowCommand(g *globals) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show who holds a lock",
		Long: `Show who holds a lock, since when, and for how much longer: held, expired (the next
who asks gets it) or free. The exit code is 0 in all three cases.

A LOCK_KEY from list is a key too.`,
		Example: `  sqllock show orders/42
  test "$(sqllock show --json orders/42 | jq -r .state)" = held`,
		Args: exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withRepository(cmd.Context(), func(_ *connection, r *sqllock.Repository) error {
				row, ok, err := r.Peek(cmd.Context(), args[0], g.ttl)
				if err != nil {
					return err
				}
				rememberName(args[0])
				if ok {
					g.noteJudgedBy(cmd, r)
				}
				return writeShown(cmd.OutOrStdout(), g.shownView(r, args[0], row, ok), asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	g.addTTLFlag(cmd)
	return cmd
}

// shownView is the view of a row that need not be there. Its key is known: the
// user has just given it.
func (g *globals) shownView(r *sqllock.Repository, key string, row sqllock.Row, ok bool) rowView {
	if ok {
		return viewOf(row, newNameBook([]string{key}))
	}
	lockKey, _ := r.LockKey(key) // Peek has mapped it before
	return rowView{Key: &key, LockKey: lockKey, Region: g.region, State: stateFree}
}

func writeShown(w io.Writer, v rowView, asJSON bool) error {
	if asJSON {
		return writeJSON(w, v)
	}
	text := fmt.Sprintf("key        %s\nlock key   %s\nregion     %s\nstate      %s\n",
		v.keyText(), printable(v.LockKey), printable(v.Region), v.State)
	if v.Holder != nil {
		text += fmt.Sprintf("holder     %s\nacquired   %s ago\ntime left  %s\n", v.holderText(), short(v.age), v.leftText())
	}
	_, err := io.WriteString(w, text)
	return err
}
