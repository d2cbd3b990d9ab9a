package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
)

// The pace of the demo, slow enough to watch.
const (
	minWork  = 120 * time.Millisecond
	maxWork  = 200 * time.Millisecond
	maxRest  = 250 * time.Millisecond
	pollTime = 20 * time.Millisecond // IdleBetweenTries
)

// An event is what a worker reports to its parent: JSON lines on its standard output.
type event struct {
	Kind    eventKind
	At      time.Time     // when the round began to work; all processes are on one host, so their clocks agree
	Waited  time.Duration // for the lock
	Worked  time.Duration
	Overlap bool          // another process was working
	Left    time.Duration // how long the lease still lasted at At or later

	from *process // set by the parent
}

type eventKind string

const (
	ready    eventKind = "ready"    // the worker waits for its first order
	hanging  eventKind = "hanging"  // it holds the lock, and waits to be killed
	finished eventKind = "finished" // it has worked, and waits for the next order as soon as the lock is released
	ended    eventKind = "ended"    // the process has ended; the parent creates this event
)

// The orders of the parent to a worker, one a line on its standard input. At the end of
// the input, the worker stops.
const (
	orderWork = "work" // do one round
	orderHang = "hang" // acquire the lock and wait to be killed
)

// workerName is the hidden subcommand that a worker runs.
const workerName = "demo-worker"

// A worker is one of the processes that add 1, as seen by itself.
type worker struct {
	directory  string
	stdin      io.Reader
	events     *json.Encoder
	repository *sqllock.Repository
	lock       *sqllock.JdbcLock // nil without a lock
}

// WorkerCommand returns the hidden subcommand that a worker runs.
func WorkerCommand(flags *connect.Flags) *cobra.Command {
	w := &worker{}
	var ttl time.Duration
	var withoutLock bool
	cmd := &cobra.Command{
		Use:    workerName,
		Short:  "One of the processes of demo, which starts it",
		Hidden: true,
		Args:   args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.stdin, w.events = cmd.InOrStdin(), json.NewEncoder(cmd.OutOrStdout())
			if withoutLock {
				return w.run(cmd.Context())
			}
			return flags.WithDatabase(cmd.Context(), connect.MustExist, func(c *connect.Connection) error {
				if err := w.obtainLock(cmd.Context(), flags, c, ttl); err != nil {
					return err
				}
				return w.run(cmd.Context())
			})
		},
	}
	f := cmd.Flags()
	f.DurationVar(&ttl, "ttl", sqllock.DefaultTTL, "time-to-live of the lock")
	f.StringVar(&w.directory, "directory", "", "where the files are")
	f.BoolVar(&withoutLock, "without-lock", false, "work without the lock")
	return cmd
}

func (w *worker) obtainLock(ctx context.Context, flags *connect.Flags, c *connect.Connection, ttl time.Duration) (err error) {
	if w.repository, err = flags.Repository(ctx, c, sqllock.RepositoryOptions{TTL: ttl}); err != nil {
		return err
	}
	registry, err := sqllock.NewRegistry(w.repository, &sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: pollTime})
	if err != nil {
		return err
	}
	w.lock, err = registry.Obtain(lockKey)
	return err
}

// run does rounds until the end of the orders, which also ends a round: the parent has closed the
// pipe or has ended.
func (w *worker) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	orders := make(chan string, 1)
	go func() {
		defer stop()
		lines := bufio.NewScanner(w.stdin)
		for lines.Scan() {
			orders <- lines.Text()
		}
	}()
	if err := w.report(event{Kind: ready}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case order := <-orders:
			if err := w.round(ctx, order == orderHang); err != nil && ctx.Err() == nil {
				return err
			}
		}
		if w.lock != nil {
			pause(ctx, rand.N(maxRest))
		}
	}
}

// round does one round, with the lock or without it.
func (w *worker) round(ctx context.Context, hang bool) (err error) {
	began := time.Now()
	if w.lock != nil {
		lease, lockErr := w.lock.Lock(ctx)
		if lockErr != nil {
			return lockErr
		}
		defer func() { err = errors.Join(err, lease.Unlock(ctx)) }()
	}
	e := event{At: time.Now()}
	e.Waited = e.At.Sub(began)
	return w.enter(ctx, e, hang)
}

// enter is the critical section. It detects overlaps by a lock of the operating system,
// which is independent of the database and ends with the process.
func (w *worker) enter(ctx context.Context, e event, hang bool) (err error) {
	guard := flock.New(filepath.Join(w.directory, "guard"))
	alone, err := guard.TryLock()
	if err != nil {
		return fmt.Errorf("lock the guard file: %w", err)
	}
	defer func() { err = errors.Join(err, guard.Close()) }()
	e.Overlap = !alone
	if hang {
		return w.hang(ctx, e)
	}
	value, err := readCounter(w.directory)
	if err != nil {
		return err
	}
	pause(ctx, minWork+rand.N(maxWork-minWork))
	if err := writeCounter(w.directory, value+1); err != nil {
		return err
	}
	e.Kind, e.Worked = finished, time.Since(e.At)
	return w.report(e)
}

// hang reports how long the row will last, which it asks the database, and then waits to
// be killed.
func (w *worker) hang(ctx context.Context, e event) error {
	row, _, err := w.repository.Peek(ctx, lockKey)
	if err != nil {
		return err
	}
	e.Kind, e.Left = hanging, row.Left
	err = w.report(e)
	<-ctx.Done()
	return err
}

// report sends an event to the parent.
func (w *worker) report(e event) error {
	if err := w.events.Encode(e); err != nil {
		return fmt.Errorf("report to the demo: %w", err)
	}
	return nil
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
