package show

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
)

// Unlock returns the subcommand unlock.
func Unlock(flags *connect.Flags) *cobra.Command {
	var force, asJSON bool
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "unlock --force KEY",
		Short: "Remove the row of a lock, even if it is held",
		Long: `Remove the row of a lock, even if it is held, and print what was removed.

This breaks the lock. If its holder is alive, it goes on working until it renews or
checks its lease, while another process can acquire the lock. Therefore --force is
required. Make sure that the holder is dead, or wait until its lease expires.

If another holder acquires the lock while the command runs, the new holder's row is
not removed. A LOCK_KEY printed by list can be used as KEY. The rows of permits and
readers are not the lock's own, and stay: describe shows them.`,
		Example: `  sqllock describe orders/42
  sqllock unlock --force orders/42`,
		Args:              args.Exactly("KEY"),
		ValidArgsFunction: complete.Rows(flags),
		RunE: func(cmd *cobra.Command, given []string) error {
			if !force {
				return exit.WithHint(exit.Usagef("unlock breaks the lock: if its holder is alive, two processes will work at once, and if it has finished, its minimum hold ends; it requires --force"),
					"sqllock describe%[1]s %[2]s; then, if its holder is dead, sqllock unlock --force%[1]s %[2]s", args.Given(cmd), args.Key(given[0]))
			}
			return flags.WithRepository(cmd.Context(), ttl, func(r *sqllock.Repository) error {
				return unlock(cmd, flags, r, ttl, given[0], asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove the row even if the lock is held")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	connect.AddTTL(cmd, &ttl)
	return cmd
}

// unlock removes the row that it has read, and no other.
func unlock(cmd *cobra.Command, flags *connect.Flags, r *sqllock.Repository, ttl time.Duration, key string, asJSON bool) error {
	row, ok, err := r.Peek(cmd.Context(), key)
	if err != nil {
		return err
	}
	state.RememberKey(key)
	if !ok || row.Released() {
		if err := refuseShared(cmd, flags, r, key); err != nil {
			return err
		}
	}
	nameProcess(cmd.Context(), r, &row)
	v := viewOfKey(flags, r, key, row, ok)
	if !ok {
		if asJSON {
			return format.JSON(cmd.OutOrStdout(), unlocked{false, v})
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%q in region %s is free: nothing to remove\n", key, format.Printable(flags.Region))
		return err
	}
	deleted, err := r.Delete(cmd.Context(), key, row.Holder)
	switch {
	case err != nil:
		return err
	case !deleted:
		return exit.WithHint(fmt.Errorf("%q was released or acquired by another holder meanwhile: nothing removed (it was held by %s)", key, v.holderText()),
			"sqllock describe%s %s", args.Given(cmd, "force"), args.Key(key))
	}
	printTTL(cmd, r, ttl)
	if asJSON {
		return format.JSON(cmd.OutOrStdout(), unlocked{true, v})
	}
	what := "held by " + v.holderText()
	left := "its lease had " + format.Duration(v.row.Left) + " left"
	switch {
	case v.row.Released():
		what, left = v.holderText()+" had finished", "it was free"
	case v.row.Kept():
		what, left = v.holderText()+" had finished", "its minimum hold had "+format.Duration(v.row.Left)+" left"
	case v.row.Expired():
		left = "its lease " + v.leftText()
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "removed %q in region %s: %s, acquired %s; %s\n",
		key, format.Printable(v.Region), what, v.ageText(), left)
	return err
}

// refuseShared returns an error if permits or readers have the lock: their rows are not the one that unlock removes.
func refuseShared(cmd *cobra.Command, flags *connect.Flags, r *sqllock.Repository, key string) error {
	d, err := describe(cmd.Context(), flags, r, key)
	if err != nil || d.State != stateShared {
		return err
	}
	return exit.WithHint(fmt.Errorf("%q in region %s is shared (permits: %d, readers: %d), and each of them has a row of its own: nothing removed",
		key, format.Printable(flags.Region), alive(d.Permits), alive(d.Readers)), "sqllock describe%s %s", args.Given(cmd, "force", "json"), args.Key(key))
}

// alive returns how many leases of seats have not ended.
func alive(seats []seatView) (n int) {
	for _, seat := range seats {
		if !seat.row.Expired() {
			n++
		}
	}
	return n
}

// unlocked is what unlock has done: the row is what it was before. Its JSON form is documented in
// docs/cli.md.
type unlocked struct {
	Removed bool `json:"removed"`
	rowView
}
