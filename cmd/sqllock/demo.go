package main

import (
	"context"
	"errors"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// Limits of the demo's flags. Work takes workAtLeast to workAtMost.
const (
	demoMinTTL     = 500 * time.Millisecond
	demoMaxWorkers = 16
	demoKey        = "demo/counter"
)

// A demo shows several processes that contend for one lock.
type demo struct {
	g           *globals
	workers     int
	rounds      int
	duration    time.Duration // instead of rounds, if not 0
	ttl         time.Duration
	withoutLock bool
	out         io.Writer
}

func newDemoCommand(g *globals) *cobra.Command {
	d := &demo{g: g}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch processes compete for a lock, and one of them die with it",
		Long: `Watch processes compete for a lock, and one of them die with it.

Several processes add 1 to the number in a file: each reads it, works on it, and
writes it back, which loses updates if two do so at once. Whoever holds the lock
may work. One process is killed with SIGKILL while it holds the lock; when its
lease has run out, another takes over. An independent witness, a lock of the
operating system on another file, counts overlaps.

The exit code is 0 if no two processes overlapped, no update was lost, and nobody
took over before the dead one's lease had ended; else 1. --without-lock shows
what happens without the lock, and ends with 1.

The demo needs no database: it makes a temporary SQLite file. On the database of
--dsn it makes tables of its own, SQLLOCK_DEMO_…, and drops them at the end.
SQLLOCK_DSN is not looked at.`,
		Example: `  sqllock demo
  sqllock demo --without-lock
  sqllock demo --workers 8 --dsn postgres://user:password@localhost/test`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.out = cmd.OutOrStdout()
			if cmd.Flags().Changed("rounds") && d.duration != 0 {
				return usageError("--rounds and --duration exclude each other")
			}
			if err := d.check(); err != nil {
				return err
			}
			return d.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&d.workers, "workers", 4, "how many processes compete")
	flags.IntVar(&d.rounds, "rounds", 40, "how often, all together, they add 1")
	flags.DurationVar(&d.duration, "duration", 0, "begin new rounds for this long, instead of counting them")
	flags.DurationVar(&d.ttl, "ttl", 3*time.Second, "time-to-live of the lock: what the take-over has to wait for")
	flags.BoolVar(&d.withoutLock, "without-lock", false, "do the same work without the lock")
	return cmd
}

// check refuses values with which there would be nothing to see.
func (d *demo) check() error {
	switch {
	case d.workers < 2 || d.workers > demoMaxWorkers:
		return usageError("--workers %d: 2 to %d processes can compete", d.workers, demoMaxWorkers)
	case d.rounds < 2*d.workers:
		return usageError("--rounds %d: at least 2 for each worker", d.rounds)
	case d.duration < 0 || d.duration > 0 && d.duration < time.Second:
		return usageError("--duration %v: at least 1s", d.duration)
	case d.ttl < demoMinTTL:
		return usageError("--ttl %v: at least %v, so that work fits in", d.ttl, demoMinTTL)
	}
	return nil
}

func (d *demo) run(ctx context.Context) (err error) {
	// A reader that goes away must be an error, not the end without cleaning up.
	signal.Ignore(syscall.SIGPIPE)
	s, err := d.setStage(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.strike(ctx)) }()
	r := newRecord(d, s.place)
	view, err := d.newView(r)
	if err != nil {
		return err
	}
	view.open()
	err = d.perform(ctx, s, r, view)
	view.close()
	if err != nil {
		return err
	}
	if err := writeSummary(d.out, r); err != nil {
		return err
	}
	if len(r.faults()) > 0 {
		return &exitError{code: exitFailure}
	}
	return nil
}
