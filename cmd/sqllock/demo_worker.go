package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
)

// What happens to a worker.
const (
	waits    = "waits"
	holds    = "holds"
	overlaps = "overlaps" // somebody else is in, too
	stalls   = "stalls"   // holds, and is about to be killed
	wrote    = "wrote"
	released = "released"
	goes     = "goes" // there is nothing left to do
)

// An event is a line that a worker writes for the demo to read.
type event struct {
	Worker string        `json:"worker"`
	What   string        `json:"what"`
	Waited time.Duration `json:"waited,omitempty"`
	Value  int           `json:"value,omitempty"`
}

// A worker is one of the processes that compete.
type worker struct {
	stage
	worker      string
	rounds      int
	ttl         time.Duration
	withoutLock bool
	events      *json.Encoder
}

func newDemoWorkerCommand(g *globals) *cobra.Command {
	var w worker
	cmd := &cobra.Command{
		Use:         "demo-worker",
		Hidden:      true,
		Annotations: map[string]string{ownSignals: ""}, // the demo ends it
		Args:        exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.globals, w.ttl, w.events = g, g.ttl, json.NewEncoder(cmd.OutOrStdout())
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() {
				_, _ = io.Copy(io.Discard, cmd.InOrStdin()) // ends when the demo does
				cancel()
			}()
			err := w.run(ctx)
			if ctx.Err() != nil {
				return nil
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&w.dir, "directory", "", "what the workers share")
	flags.StringVar(&w.worker, "worker", "", "name of the worker")
	flags.IntVar(&w.rounds, "rounds", 0, "where the counter stops")
	flags.DurationVar(&g.ttl, "ttl", 0, "time-to-live of the lock")
	flags.BoolVar(&w.withoutLock, "without-lock", false, "go in unasked")
	return cmd
}

// run increments the counter, each time under the lock, until it has reached the
// number of rounds.
func (w *worker) run(ctx context.Context) error {
	if w.withoutLock {
		return w.untilDone(ctx, func() (bool, error) { return w.round(ctx, 0) })
	}
	return w.globals.withRepository(ctx, func(_ *connection, r *sqllock.Repository) error {
		registry, err := sqllock.NewRegistry(r, &sqllock.RegistryOptions{TTL: w.ttl, IdleBetweenTries: 30 * time.Millisecond})
		if err != nil {
			return err
		}
		defer func() { _ = registry.Close(context.WithoutCancel(ctx)) }() // the demo drops the table
		lock, err := registry.Obtain("counter")
		if err != nil {
			return err
		}
		return w.untilDone(ctx, func() (done bool, err error) {
			began := time.Now()
			lease, err := lock.Lock(ctx)
			if err != nil {
				return false, err
			}
			done, err = w.round(lease.Context(), time.Since(began)) //nolint:contextcheck // it is made from ctx
			return done, errors.Join(err, lease.Unlock(ctx))
		})
	})
}

func (w *worker) untilDone(ctx context.Context, round func() (bool, error)) error {
	for {
		if err := w.tell(event{What: waits}); err != nil {
			return err
		}
		done, err := round()
		if done || err != nil {
			return err
		}
		// A life outside of the lock, so that others get their turn.
		if err := nap(ctx, 5*time.Millisecond+rand.N(15*time.Millisecond)); err != nil {
			return err
		}
	}
}

// round is the critical section: read, work, write.
func (w *worker) round(ctx context.Context, waited time.Duration) (done bool, err error) {
	if err := w.tell(event{What: holds, Waited: waited}); err != nil {
		return false, err
	}
	witness := flock.New(filepath.Join(w.dir, "witness"))
	alone, err := witness.TryLock()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, witness.Close()) }()
	if !alone {
		if err := w.tell(event{What: overlaps}); err != nil {
			return false, err
		}
	}
	if os.Remove(w.stallPath()) == nil {
		return true, w.stall(ctx)
	}
	n, err := w.readCounter()
	if err != nil {
		return false, err
	}
	if n >= w.rounds {
		return true, w.tell(event{What: goes})
	}
	if err := nap(ctx, 15*time.Millisecond+rand.N(25*time.Millisecond)); err != nil {
		return false, err
	}
	if err := w.writeCounter(n + 1); err != nil {
		return false, err
	}
	return false, errors.Join(w.tell(event{What: wrote, Value: n + 1}), w.tell(event{What: released}))
}

// stall holds the lock until the process is killed.
func (w *worker) stall(ctx context.Context) error {
	if err := w.tell(event{What: stalls}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (w *worker) tell(e event) error {
	e.Worker = w.worker
	return w.events.Encode(e)
}

// nap is the work that takes time.
func nap(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
