// Package demo is the subcommand demo: several processes contend for one lock, and one
// of them is killed while it holds the lock.
//
// The parent process starts the workers, which are processes of the same program. It
// tells each worker when to do a round (scheduler.go), records the events that the
// workers report (timeline.go), and shows them on a terminal (screen.go) or as lines
// (lines.go).
package demo

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// Command returns the subcommand.
func Command(flags *connect.Flags) *cobra.Command {
	o := &options{flags: flags}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch processes contend for a lock, and one of them crash",
		Long: `Watch processes contend for a lock, and one of them crash while it holds the lock.

Several processes add 1 to the number in a file. Each reads the number, works for a
while, and writes it back, which loses an update if two processes do so at once. So a
process works only while it holds the lock. One process is killed with SIGKILL while
it holds the lock; when its lease has expired, another acquires the lock. To detect
overlaps without the database, each process also locks a second file with the
operating system.

The exit code is 0 if no two processes overlapped, no update was lost, and the lock of
the killed process was not acquired before its lease expired; else 1. --without-lock
shows what happens without the lock, and ends with 1.

The demo needs no database: it creates a temporary SQLite file. In the database of
--dsn it creates tables of its own, SQLLOCK_DEMO_…, and drops them at the end.
SQLLOCK_DSN is not used.`,
		Example: `  sqllock demo
  sqllock demo --without-lock
  sqllock demo --page --duration 5m
  sqllock demo --workers 8 --dsn postgres://user:password@localhost/test`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out = cmd.OutOrStdout()
			if cmd.Flags().Changed("rounds") && o.duration != 0 {
				return exit.Usagef("--rounds and --duration exclude each other")
			}
			if o.page && o.withoutLock {
				return exit.Usagef("--page and --without-lock exclude each other: there is no lock to show")
			}
			if err := o.check(); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.workers, "workers", 4, "number of processes")
	f.IntVar(&o.rounds, "rounds", 40, "how often the processes add 1, in total")
	f.DurationVar(&o.duration, "duration", 0, "start new rounds for this long, instead of counting them")
	f.DurationVar(&o.ttl, "ttl", 3*time.Second, "time-to-live of the lock: how long it stays taken after the kill")
	f.BoolVar(&o.withoutLock, "without-lock", false, "do the same work without the lock")
	f.BoolVar(&o.page, "page", false, "also show the lock in a browser, while the demo runs: prints the address")
	return cmd
}

func run(ctx context.Context, o *options) (err error) {
	// If the reader of the output goes away, the demo must get an error and clean up.
	signal.Ignore(syscall.SIGPIPE)
	w, err := newWorkspace(ctx, o.flags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	t := newTimeline(o, w.place)
	if o.page {
		url, stop, failed := servePage(ctx, o, w)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, stop()) }()
		t.page = url
	}
	view, err := newView(t)
	if err != nil {
		return err
	}
	view.open()
	err = schedule(ctx, o, w, t, view)
	view.close()
	if err != nil {
		return err
	}
	if err := writeSummary(o.out, t); err != nil {
		return err
	}
	if len(t.faults()) > 0 {
		return &exit.Error{Code: exit.Failure}
	}
	return nil
}
