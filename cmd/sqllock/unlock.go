package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
)

func newUnlockCommand(g *globals) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "unlock --force KEY",
		Short: "Remove the row of a lock, whoever holds it",
		Long: `Remove the row of a lock, whoever holds it, and say what was removed.

This breaks the lock: if its holder is alive it goes on working, until it looks
at the lock the next time, and the next who asks works beside it. Hence --force.
Be sure that the holder is dead; or wait, for its time-to-live ends by itself.

If the lock changes hands while the command runs, the new holder's row is left
alone. A LOCK_KEY from list is a key too.`,
		Example: `  sqllock show orders/42
  sqllock unlock --force orders/42`,
		Args: exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !force {
				return withHint(usageError("unlock breaks the lock: if its holder is alive, two will work at once; it wants --force"),
					"sqllock show %[1]s; then, if its holder is dead, sqllock unlock --force %[1]s", args[0])
			}
			return g.withRepository(cmd.Context(), func(_ *connection, r *sqllock.Repository) error {
				return g.unlock(cmd, r, args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "yes, remove a row that may be in use")
	g.addTTLFlag(cmd)
	return cmd
}

// unlock removes the row that it has seen, and no other.
func (g *globals) unlock(cmd *cobra.Command, r *sqllock.Repository, key string) error {
	row, ok, err := r.Peek(cmd.Context(), key, g.ttl)
	if err != nil {
		return err
	}
	rememberName(key)
	if !ok {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%q in region %s is free: nothing to remove\n", key, printable(g.region))
		return err
	}
	v := viewOf(row, newNameBook([]string{key}))
	deleted, err := r.Delete(cmd.Context(), key, row.Holder)
	switch {
	case err != nil:
		return err
	case !deleted:
		return withHint(fmt.Errorf("%q was released or changed hands meanwhile: nothing removed (it was held by %s)", key, v.holderText()),
			"sqllock show %s", key)
	}
	left := "its lease had " + short(v.left) + " left"
	if v.Expired {
		left = "its lease " + v.leftText()
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "removed %q in region %s: held by %s, acquired %s ago; %s\n",
		key, printable(v.Region), v.holderText(), short(v.age), left)
	return err
}
