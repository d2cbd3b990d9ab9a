// Package trial is the subcommands demo and verify: several processes contend for one lock, and one
// of them is killed while it holds the lock.
//
// The parent process starts the workers, which are processes of the same program (crew.go, process.go,
// worker.go), on tables of their own (workspace.go). It tells each worker when to do a round and kills one of
// them. demo (demo.go) prints a line for each round, and a summary (report.go). verify (verify.go) prints which
// promises the database keeps.
package trial

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

//go:embed demo.txt
var demoHelp string

// Limits of the options.
const (
	minTTL     = 500 * time.Millisecond
	maxWorkers = 16
)

// lockKey is the key of the lock that the workers contend for.
const lockKey = "demo/counter"

// options are the flags of one trial, and its output.
type options struct {
	flags       *connect.Flags
	workers     int
	rounds      int
	ttl         time.Duration
	withoutLock bool
	verify      bool // what the workers do is for verify
	out         io.Writer
}

// Demo returns the subcommand demo.
func Demo(flags *connect.Flags) *cobra.Command {
	o := &options{flags: flags}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch processes contend for a lock, and one of them crash",
		Long:  demoHelp,
		Example: `  sqllock demo
  sqllock demo --without-lock
  sqllock demo --workers 8 --dsn postgres://user:password@localhost/test`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out = cmd.OutOrStdout()
			if err := o.check(); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.workers, "workers", 4, "number of processes")
	f.IntVar(&o.rounds, "rounds", 40, "how often the processes add 1, in total")
	f.DurationVar(&o.ttl, "ttl", 3*time.Second, "time-to-live of the lock: how long it stays taken after the kill")
	f.BoolVar(&o.withoutLock, "without-lock", false, "do the same work without the lock")
	return cmd
}

// check rejects values with which the demo would show nothing.
func (o *options) check() error {
	switch {
	case o.workers < 2 || o.workers > maxWorkers:
		return exit.Usagef("--workers %d: it must be 2 to %d", o.workers, maxWorkers)
	case o.rounds < 2*o.workers:
		return exit.Usagef("--rounds %d: it must be at least 2 for each worker", o.rounds)
	case o.ttl < minTTL:
		return exit.Usagef("--ttl %v: it must be at least %v, longer than a round", o.ttl, minTTL)
	}
	return nil
}

func run(ctx context.Context, o *options) (err error) {
	// If the reader of the output goes away, the demo must get an error and clean up.
	signal.Ignore(syscall.SIGPIPE)
	w, err := newWorkspace(ctx, o.flags, "DEMO", &o.ttl)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove(ctx)) }()
	d := &demo{record: record{options: o}, workspace: w}
	d.introduce(w.place)
	if err := d.conduct(ctx); err != nil {
		return err
	}
	d.summarize()
	if d.err != nil {
		return fmt.Errorf("print: %w", d.err)
	}
	if len(d.faults()) > 0 {
		return &exit.Error{Code: exit.Failure}
	}
	return nil
}
