// Package top is the subcommand top: the lock table in a terminal, live.
//
// The model (model.go, keys.go) knows what is shown and what a key does, and a frame is drawn from it
// (frame.go). terminal.go runs it in a terminal; lines.go prints tables where there is none.
package top

import (
	_ "embed"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
	"github.com/sqllock/sqllock/internal/listing"
)

//go:embed help.txt
var text string

// Command returns the subcommand.
func Command(flags *connect.Flags) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the locks in the terminal",
		Long:  text,
		Example: `  sqllock top
  sqllock top --sort left --interval 5s
  sqllock top --count 1 | head`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return flags.WithRepository(cmd.Context(), o.ttl, func(r *sqllock.Repository) error {
				locks := repository{r, o.limit, state.Keys(o.names...), nil}
				if t, ok := openTerminal(cmd.InOrStdin(), cmd.OutOrStdout()); ok {
					locks.jobs = new(jobRuns)
					return t.watch(cmd.Context(), locks, o)
				}
				return printTables(cmd.Context(), cmd.OutOrStdout(), locks, o)
			})
		},
	}
	f := cmd.Flags()
	f.DurationVar(&o.interval, "interval", time.Second, "how often the table is read")
	f.IntVar(&o.count, "count", 0, "end after this many tables; 0 means never")
	f.IntVar(&o.limit, "limit", 1000, "how many rows to read at most")
	f.StringVar(&o.sort, "sort", string(listing.Oldest), "sort by key, region, holder, age or left; a minus before it means the greatest first")
	f.StringArrayVar(&o.names, "name", nil, "show this key instead of its hash, if it is in the table (repeatable)")
	_ = cmd.RegisterFlagCompletionFunc("name", complete.UsedKeys) // the flags exist
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(listing.Columns, cobra.ShellCompDirectiveNoFileComp))
	connect.AddTTL(cmd, &o.ttl)
	return cmd
}

// minInterval keeps the command from being a load.
const minInterval = 100 * time.Millisecond

// options are the flags of the command.
type options struct {
	interval time.Duration
	count    int
	limit    int
	sort     string
	names    []string
	ttl      time.Duration
}

// check rejects values that make no sense.
func (o *options) check() error {
	switch {
	case o.interval < minInterval:
		return exit.Usagef("--interval %v: it must be at least %v", o.interval, minInterval)
	case o.count < 0:
		return exit.Usagef("--count %d is negative", o.count)
	case o.limit < 1:
		return exit.Usagef("--limit %d: it must be at least 1", o.limit)
	case !listing.Order(o.sort).Valid():
		return exit.Usagef("--sort %s: it must be key, region, holder, age or left, or one of them after a minus", o.sort)
	}
	return nil
}
