package leasefile

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/engine"
)

// files completes FILE.
func files(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// Extend returns the subcommand extend.
func Extend(flags *connect.Flags) *cobra.Command {
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "extend FILE",
		Short: "Make a lease of acquire last longer",
		Long: `Make the lease of a file that sqllock acquire has written last for its whole
time-to-live from now, or for --ttl, and print when it ends then (RFC 3339, UTC). A
dash reads the file from the standard input.

No lease is shortened. Exit code 76 means that the lock is lost, because the lease has
ended before, or its row was removed: the work must stop. After 69, a database error,
try again: the lease lasts until its time.`,
		Example:           `  sqllock extend "$lease" || exit`,
		Args:              args.Exactly("FILE"),
		ValidArgsFunction: files,
		RunE: func(cmd *cobra.Command, given []string) error {
			if ttl != 0 && ttl < sqllock.MinTTL {
				return exit.Usagef("--ttl %v: it must be at least %v", ttl, sqllock.MinTTL)
			}
			return withFile(cmd, flags, given[0], func(h held) error { return extend(cmd, h, ttl) })
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long the lease lasts from now, once (default: the time-to-live that acquire was given)")
	return cmd
}

// withFile calls fn with the lease of a file.
func withFile(cmd *cobra.Command, flags *connect.Flags, path string, fn func(held) error) error {
	if err := flags.CheckChosen(); err != nil {
		return err
	}
	f, err := bounded.Do(cmd.Context(), 0, func() (*File, error) { return read(path, cmd.InOrStdin()) }, nil) // a pipe may have no writer
	if err != nil {
		return err
	}
	return f.with(cmd.Context(), flags, fn)
}

func extend(cmd *cobra.Command, h held, ttl time.Duration) error {
	switch {
	case ttl == 0:
		ttl = h.ttl()
	case ttl != h.ttl() && h.repository.Layout() == dialect.Spring6:
		return exit.Usagef("--ttl %v: in a table without EXPIRED_AFTER all leases have the same time-to-live, and this one has %v", ttl, h.ttl())
	}
	extended, err := h.extend(cmd.Context(), ttl)
	switch {
	case err != nil:
		return err
	case !extended:
		if err := h.loss(cmd.Context()); err != nil {
			return err
		}
		return h.lost("its row has changed meanwhile")
	}
	return h.printEnd(cmd)
}

// printEnd prints when the lease ends: it may last for longer than it was extended for.
func (h held) printEnd(cmd *cobra.Command) error {
	began := time.Now()
	rows, err := h.repository.PeekAll(cmd.Context(), h.Keys...)
	if err != nil {
		return err
	}
	if err := h.lossBy(rows); err != nil {
		return err
	}
	left := rows[h.Keys[0]].Left
	for _, row := range rows {
		left = min(left, row.Left)
	}
	// As SQLLOCK_DEADLINE of exec: whole seconds, and earlier than the row ends.
	end := began.Add(left - engine.Margin(left))
	_, err = fmt.Fprintln(cmd.OutOrStdout(), end.UTC().Format(time.RFC3339))
	return err
}

// Release returns the subcommand release.
func Release(flags *connect.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "release FILE",
		Short: "Release a lock of acquire",
		Long: `Release the lock of a file that sqllock acquire has written, and remove the file. A
dash reads it from the standard input. A lock that was acquired with --min-hold stays
taken until that is over.

Exit code 76 means that the lock was lost before: what was done under it may have been
done by two processes at the same time. The file is removed then, too, unless the lock
was acquired in another database. In a script, set the trap after acquire has succeeded.`,
		Example: `  sqllock release "$lease"
  trap 'sqllock release "$lease"' EXIT`,
		Args:              args.Exactly("FILE"),
		ValidArgsFunction: files,
		RunE: func(cmd *cobra.Command, given []string) error {
			process.CatchBrokenPipes() // a message comes before the file is removed
			return withFile(cmd, flags, given[0], func(h held) error {
				err := release(cmd, h)
				if err == nil || exit.CodeOf(err) == exit.LockLost && !h.isElsewhere() {
					h.removeFile(cmd, given[0])
				}
				return err
			})
		},
	}
}

// removeFile removes the file of a lease that is over. A copy may be where nothing can be removed, and does no harm.
func (h held) removeFile(cmd *cobra.Command, path string) {
	if err := h.remove(path); err != nil {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "sqllock: the lease is over, but its file stays: %s\n", exit.Text(err))
	}
}

// release releases the lock. A lease that has ended is lost, also if no other process has acquired the lock, as it is for
// a process that holds it.
func release(cmd *cobra.Command, h held) error {
	rows, err := h.repository.PeekAll(cmd.Context(), h.Keys...)
	if err != nil {
		return err
	}
	lost, rest := h.lossBy(rows), h.minHoldLeft(rows)
	var all bool
	if lost == nil && rest > 0 {
		all, err = h.keep(cmd.Context(), rest)
	} else {
		all, err = h.release(cmd.Context())
	}
	switch {
	case lost != nil:
		return lost
	case err != nil:
		return err
	case !all:
		return h.lost("its row was removed meanwhile")
	case rest > 0:
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "sqllock: released %q: it stays taken for another %s, the rest of its minimum hold\n", h.Lock, format.Duration(rest))
	}
	return nil
}
