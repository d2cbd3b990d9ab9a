package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
	Kind eventKind `json:"kind"`
	// At is when the round began to work. All processes are on one host, so their clocks agree.
	// Events may arrive in another order.
	At time.Time `json:"at"`
	// Waited is how long the worker waited for the lock, and Worked how long it then worked.
	Waited time.Duration `json:"waited,omitempty"`
	Worked time.Duration `json:"worked,omitempty"`
	// Overlap is true if another process was working.
	Overlap bool `json:"overlap,omitempty"`
	// Left is how long the lease still lasted at At or later.
	Left time.Duration `json:"left,omitempty"`

	worker int // the number of the worker, set by the parent
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
	flags       *connect.Flags
	number      int
	ttl         time.Duration
	counter     string
	guard       string
	withoutLock bool

	events     *json.Encoder
	repository *sqllock.Repository
	lock       *sqllock.JdbcLock
}

// WorkerCommand returns the hidden subcommand that a worker runs.
func WorkerCommand(flags *connect.Flags) *cobra.Command {
	w := &worker{flags: flags}
	cmd := &cobra.Command{
		Use:    workerName,
		Short:  "One of the processes of demo, which starts it",
		Hidden: true,
		Args:   args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.events = json.NewEncoder(cmd.OutOrStdout())
			return w.run(cmd.Context(), cmd.InOrStdin())
		},
	}
	f := cmd.Flags()
	f.IntVar(&w.number, "number", 1, "the number of this worker")
	f.DurationVar(&w.ttl, "ttl", sqllock.DefaultTTL, "time-to-live of the lock")
	f.StringVar(&w.counter, "counter", "", "the file to work on")
	f.StringVar(&w.guard, "guard", "", "the file to lock, which detects overlaps")
	f.BoolVar(&w.withoutLock, "without-lock", false, "work without the lock")
	return cmd
}

func (w *worker) run(ctx context.Context, stdin io.Reader) (err error) {
	if !w.withoutLock {
		c, err := w.flags.Connect(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		if err := w.prepare(ctx, c); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = w.doRounds(ctx, readOrders(stdin, cancel))
	if ctx.Err() != nil {
		return nil // it was ordered to stop
	}
	return err
}

func (w *worker) prepare(ctx context.Context, c *connect.Connection) (err error) {
	w.repository, err = w.flags.Repository(ctx, c, sqllock.RepositoryOptions{ClientID: fmt.Sprintf("worker-%d", w.number), TTL: w.ttl})
	if err != nil {
		return err
	}
	registry, err := sqllock.NewRegistry(w.repository, &sqllock.RegistryOptions{TTL: w.ttl, IdleBetweenTries: pollTime})
	if err != nil {
		return err
	}
	w.lock, err = registry.Obtain(lockKey)
	return err
}

// readOrders delivers the orders of the parent, and calls stop at their end: the parent
// has closed the pipe or has ended.
func readOrders(stdin io.Reader, stop func()) <-chan string {
	orders := make(chan string, 1)
	go func() {
		defer stop()
		lines := bufio.NewScanner(stdin)
		for lines.Scan() {
			orders <- lines.Text()
		}
	}()
	return orders
}

func (w *worker) doRounds(ctx context.Context, orders <-chan string) error {
	if err := w.report(event{Kind: ready}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case order := <-orders:
			if err := w.round(ctx, order == orderHang); err != nil {
				return err
			}
		}
		if !w.withoutLock {
			pause(ctx, rand.N(maxRest))
		}
	}
}

// round does one round, with the lock or without it.
func (w *worker) round(ctx context.Context, hang bool) (err error) {
	if w.withoutLock {
		return w.enter(ctx, 0, hang)
	}
	began := time.Now()
	lease, err := w.lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Unlock(ctx)) }()
	return w.enter(ctx, time.Since(began), hang)
}

// enter is the critical section. It detects overlaps by a lock of the operating system,
// which is independent of the database and ends with the process.
func (w *worker) enter(ctx context.Context, waited time.Duration, hang bool) (err error) {
	round := event{Kind: finished, At: time.Now(), Waited: waited}
	guard := flock.New(w.guard)
	alone, err := guard.TryLock()
	if err != nil {
		return fmt.Errorf("lock the guard file: %w", err)
	}
	defer func() { err = errors.Join(err, guard.Close()) }()
	round.Overlap = !alone
	if hang {
		return w.hang(ctx, round)
	}
	value, err := readCounter(w.counter)
	if err != nil {
		return err
	}
	pause(ctx, minWork+rand.N(maxWork-minWork))
	if err := writeCounter(w.counter, value+1); err != nil {
		return err
	}
	round.Worked = time.Since(round.At)
	return w.report(round)
}

// hang reports how long the row will last, which it asks the database, and then waits to
// be killed.
func (w *worker) hang(ctx context.Context, round event) error {
	row, _, err := w.repository.Peek(ctx, lockKey)
	if err != nil {
		return err
	}
	round.Kind, round.Left = hanging, row.Left
	if err := w.report(round); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
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
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
