package trial

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
	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
)

// The pace of the demo, slow enough to watch; and that of verify, where a section that lasts half of a lease may be
// met by a failover.
const (
	verifyWork = 10 * time.Millisecond

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
	Token   int64
	Err     string // why a round was not finished
	Written bool   // the value that a guarded transaction writes was there

	from *process // set by the parent
}

type eventKind string

const (
	ready    eventKind = "ready"    // the worker waits for an order
	hanging  eventKind = "hanging"  // it holds the lock, and waits to be killed
	finished eventKind = "finished" // it has worked, and is about to release the lock
	ended    eventKind = "ended"    // the process has ended; the parent creates this event

	// Of workers of verify alone.
	failed    eventKind = "failed"    // the round has met an error, as in an outage
	guarding  eventKind = "guarding"  // its transaction is guarded, and waits for the order to commit
	committed eventKind = "committed" // that transaction is
	taken     eventKind = "taken"     // it has the lock, and has read what that transaction writes
)

// The orders of the parent to a worker, one a line on its standard input. At the end of
// the input, the worker stops.
const (
	orderWork = "work" // do one round
	orderHang = "hang" // acquire the lock and wait to be killed

	// For workers of verify alone.
	orderGuard  = "guard"  // acquire the lock, and guard a transaction by it
	orderCommit = "commit" // commit that transaction
	orderTake   = "take"   // acquire the lock, and read what the transaction writes
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
	orders     chan string
	verifies   bool
	ttl        time.Duration
	db         *sqlx.DB
	values     string // the table that guard writes
}

// WorkerCommand returns the hidden subcommand that a worker runs.
func WorkerCommand(flags *connect.Flags) *cobra.Command {
	w := &worker{orders: make(chan string, 1)}
	var withoutLock bool
	cmd := &cobra.Command{
		Use:    workerName,
		Short:  "One of the processes of demo and verify, which start it",
		Hidden: true,
		Args:   args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.stdin, w.events = cmd.InOrStdin(), json.NewEncoder(cmd.OutOrStdout())
			if withoutLock {
				return w.run(cmd.Context())
			}
			return flags.WithDatabase(cmd.Context(), connect.MustExist, func(c *connect.Connection) error {
				if err := w.obtainLock(cmd.Context(), flags, c); err != nil {
					return err
				}
				return w.run(cmd.Context())
			})
		},
	}
	f := cmd.Flags()
	f.DurationVar(&w.ttl, "ttl", sqllock.DefaultTTL, "time-to-live of the lock")
	f.StringVar(&w.directory, "directory", "", "where the files are")
	f.BoolVar(&withoutLock, "without-lock", false, "work without the lock")
	f.BoolVar(&w.verifies, "verify", false, "report errors, and go on")
	return cmd
}

func (w *worker) obtainLock(ctx context.Context, flags *connect.Flags, c *connect.Connection) (err error) {
	w.db, w.values = c.DB, flags.Prefix+valueTable
	if w.repository, err = flags.Repository(ctx, c, sqllock.RepositoryOptions{TTL: w.ttl}); err != nil {
		return err
	}
	registry, err := sqllock.NewRegistry(w.repository, &sqllock.RegistryOptions{TTL: w.ttl, IdleBetweenTries: pollTime, WaitThroughOutages: w.verifies, NoRenew: true})
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
	go func() {
		defer stop()
		lines := bufio.NewScanner(w.stdin)
		for lines.Scan() {
			w.orders <- lines.Text()
		}
	}()
	for {
		if err := w.report(event{Kind: ready}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case order := <-w.orders:
			err := w.round(ctx, order)
			if err != nil && w.verifies {
				err = w.report(event{Kind: failed, Err: err.Error()})
			}
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
		if w.lock != nil && !w.verifies {
			pause(ctx, rand.N(maxRest))
		}
	}
}

// round does one round, with the lock or without it.
func (w *worker) round(ctx context.Context, order string) (err error) {
	began, e, holding := time.Now(), event{}, ctx //nolint:contextcheck // that of the lease is made from ctx
	if w.lock != nil {
		lease, lockErr := w.lock.Lock(ctx)
		if lockErr != nil {
			return lockErr
		}
		defer func() {
			if lost := lease.Unlock(ctx); order != orderGuard { // which keeps it for longer than it lasts
				err = errors.Join(err, lost)
			}
		}()
		switch e.Token = lease.Token(); order {
		case orderGuard:
			return w.guard(ctx, lease)
		case orderTake:
			return w.take(ctx)
		}
		holding = lease.Context()
	}
	e.At = time.Now()
	e.Waited = e.At.Sub(began)
	return w.enter(holding, e, order == orderHang)
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
	pause(ctx, w.working())
	if ctx.Err() != nil {
		return context.Cause(ctx) // the lease was lost: another worker may count
	}
	if err := writeCounter(w.directory, value+1); err != nil {
		return err
	}
	e.Kind, e.Worked = finished, time.Since(e.At)
	return w.report(e)
}

// working returns how long the next round is to work.
func (w *worker) working() time.Duration {
	switch {
	case !w.verifies:
		return minWork + rand.N(maxWork-minWork)
	case rand.N(10) == 0:
		return rand.N(w.ttl / 2)
	default:
		return rand.N(verifyWork)
	}
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
