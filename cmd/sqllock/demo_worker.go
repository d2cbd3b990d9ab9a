package main

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
)

// The pace of the demo: slow enough to be watched.
const (
	workAtLeast = 120 * time.Millisecond
	workAtMost  = 200 * time.Millisecond
	restAtMost  = 250 * time.Millisecond
	demoIdle    = 20 * time.Millisecond // IdleBetweenTries
)

// A player is a worker as it sees itself: the process that adds 1.
type player struct {
	g           *globals
	number      int
	ttl         time.Duration
	counter     string
	witness     string
	withoutLock bool

	events     *json.Encoder
	repository *sqllock.Repository
	lock       *sqllock.JdbcLock
}

func newDemoWorkerCommand(g *globals) *cobra.Command {
	p := &player{g: g}
	cmd := &cobra.Command{
		Use:    "demo-worker",
		Short:  "One of the processes of demo, which starts it",
		Hidden: true,
		Args:   exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.events = json.NewEncoder(cmd.OutOrStdout())
			return p.run(cmd.Context(), cmd.InOrStdin())
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&p.number, "number", 1, "which worker this is")
	flags.DurationVar(&p.ttl, "ttl", sqllock.DefaultTTL, "time-to-live of the lock")
	flags.StringVar(&p.counter, "counter", "", "the file to work on")
	flags.StringVar(&p.witness, "witness", "", "the file that tells overlaps")
	flags.BoolVar(&p.withoutLock, "without-lock", false, "work without the lock")
	return cmd
}

func (p *player) run(ctx context.Context, stdin io.Reader) (err error) {
	if !p.withoutLock {
		c, err := p.g.connect(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		if err := p.prepare(c); err != nil { //nolint:contextcheck // NewRepository takes none
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = p.obey(ctx, ordersFrom(stdin, cancel))
	if ctx.Err() != nil {
		return nil // it was told to stop, and did
	}
	return err
}

func (p *player) prepare(c *connection) (err error) {
	p.repository, err = p.g.repository(c, sqllock.RepositoryOptions{ClientID: fmt.Sprintf("worker-%d", p.number)})
	if err != nil {
		return err
	}
	registry, err := sqllock.NewRegistry(p.repository, &sqllock.RegistryOptions{TTL: p.ttl, IdleBetweenTries: demoIdle})
	if err != nil {
		return err
	}
	p.lock, err = registry.Obtain(demoKey)
	return err
}

// ordersFrom delivers what the parent says, and calls stop when it says no more
// or is no more.
func ordersFrom(stdin io.Reader, stop func()) <-chan string {
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

func (p *player) obey(ctx context.Context, orders <-chan string) error {
	for {
		if err := p.tell(demoEvent{Kind: demoReady}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case order := <-orders:
			if err := p.round(ctx, order == orderHang); err != nil {
				return err
			}
		}
		if !p.withoutLock {
			take(ctx, rand.N(restAtMost))
		}
	}
}

// round does one round, with the lock or without it.
func (p *player) round(ctx context.Context, hang bool) (err error) {
	if p.withoutLock {
		return p.enter(ctx, 0, hang)
	}
	asked := time.Now()
	if err := p.tell(demoEvent{Kind: demoWaiting}); err != nil {
		return err
	}
	lease, err := p.lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Unlock(ctx)) }()
	return p.enter(ctx, time.Since(asked), hang)
}

// enter is the critical section. The witness knows nothing of databases: it is a
// lock of the kernel's, which a killed process does not keep.
func (p *player) enter(ctx context.Context, waited time.Duration, hang bool) (err error) {
	entered := demoEvent{Kind: demoEntered, At: time.Now(), Waited: waited}
	witness := flock.New(p.witness)
	alone, err := witness.TryLock()
	if err != nil {
		return fmt.Errorf("lock the witness: %w", err)
	}
	defer func() { err = errors.Join(err, witness.Close()) }()
	entered.Overlap = !alone
	if hang {
		return p.hang(ctx, entered)
	}
	if err := p.tell(entered); err != nil {
		return err
	}
	value, err := readCounter(p.counter)
	if err != nil {
		return err
	}
	take(ctx, workAtLeast+rand.N(workAtMost-workAtLeast))
	if err := writeCounter(p.counter, value+1); err != nil {
		return err
	}
	return p.tell(demoEvent{Kind: demoFinished})
}

// hang waits to be killed. Before that it asks the database how long the row
// will last.
func (p *player) hang(ctx context.Context, entered demoEvent) error {
	row, _, err := p.repository.Peek(ctx, demoKey, p.ttl)
	if err != nil {
		return err
	}
	entered.Kind, entered.Left = demoHanging, row.Left
	if err := p.tell(entered); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// tell sends an event that happens now, unless it says when.
func (p *player) tell(e demoEvent) error {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	if err := p.events.Encode(e); err != nil {
		return fmt.Errorf("report to the demo: %w", err)
	}
	return nil
}

// take lets time pass, less if ctx ends.
func take(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
