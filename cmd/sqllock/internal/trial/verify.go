package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// Limits of what a verification waits for.
const (
	outageTimeout   = 2 * time.Minute  // for the next event, through a failover
	replicaTimeout  = 10 * time.Second // until a node has the tables that another one has created
	heldBackTimeout = time.Second      // how long after its expiry the row of a guarded transaction is watched
)

// A verification is one run of verify: it gives the workers their orders, and keeps what they report.
type verification struct {
	*options
	*crew
	workspace *workspace
	server    string // what it calls itself
	nodes     []*node
	entries   []event // the critical sections that were finished, in the order in which they came
	idle      []*process
	living    int
	overlaps  int
	counter   int
	failures  int
	lastError string
	guard     verdict
	killedAt  time.Time
	expiry    time.Time // of the lease of the worker that was killed
}

// A node is one of the databases that must be one.
type node struct {
	flags      connect.Flags
	connection *connect.Connection
	clock      [2]connect.ClockDifference // at the beginning and at the end
}

func (v *verification) close() {
	v.stop()
	for _, n := range v.nodes {
		n.connection.Close()
	}
}

func (v *verification) conduct(ctx context.Context, dsns []string, lasting time.Duration) (err error) {
	if err := v.prepare(ctx, dsns); err != nil {
		return err
	}
	if err := v.readClocks(ctx, 0); err != nil {
		return err
	}
	for i := range v.options.workers {
		if err := v.start(v.options, &v.nodes[i%len(v.nodes)].flags, v.workspace.directory); err != nil {
			return err
		}
		v.living++
	}
	if err := v.allIdle(ctx); err != nil {
		return err
	}
	if err := v.checkGuard(ctx); err != nil {
		return err
	}
	if err := v.contend(ctx, lasting); err != nil {
		return err
	}
	if err := v.readClocks(ctx, 1); err != nil { // a node may be gone after a failover
		v.failures, v.lastError = v.failures+1, err.Error()
	}
	v.counter, err = readCounter(v.workspace.directory)
	return err
}

// prepare creates the table for the guarded transaction, and waits until each node has all tables.
func (v *verification) prepare(ctx context.Context, dsns []string) error {
	w := v.workspace
	if err := w.connection.DB.GetContext(ctx, &v.server, sqltext.Of(w.connection.Dialect).Statements(dialect.Spring7, sqltext.Names{}).Version); err != nil {
		return failure.As(sqllock.ErrDatabase, "", err)
	}
	w.values = w.flags.Prefix + valueTable
	for _, text := range []string{"CREATE TABLE " + w.values + " (ID INT PRIMARY KEY, N INT NOT NULL)", "INSERT INTO " + w.values + " (ID, N) VALUES (1, 0)"} {
		if _, err := w.connection.DB.ExecContext(ctx, text); err != nil {
			return failure.As(sqllock.ErrDatabase, "create a table of its own", err)
		}
	}
	if err := v.checkTables(ctx); err != nil {
		return err
	}
	for i := range max(1, len(dsns)) {
		n := &node{flags: w.flags}
		if i > 0 {
			n.flags.DSN = dsns[i]
		}
		var err error
		if n.connection, err = n.flags.Open(ctx, connect.MustExist); err != nil {
			return err
		}
		v.nodes = append(v.nodes, n)
		if err := n.awaitTables(ctx); err != nil {
			return v.refuse("database %d does not have the tables that were created in the first one, so these are not one database: %v", i+1, err)
		}
		if err := n.tryLock(ctx, v.ttl); err != nil {
			return v.refuse("the lock cannot be acquired over database %d: %v", i+1, err)
		}
	}
	return nil
}

// checkTables refuses a database in which tables of locks are not what locks need: those of an application, if
// there are any. The ones that the workers lock in may be right all the same.
func (v *verification) checkTables(ctx context.Context) error {
	flags := v.workspace.flags
	flags.Prefix = v.flags.Prefix
	faults, err := flags.Faults(ctx, v.workspace.connection, sqllock.RepositoryOptions{})
	if err != nil {
		return ctx.Err() // there are none, or this user may not see them
	}
	broken := false
	for _, f := range faults {
		mark := "✗"
		if f.Bearable {
			mark = "!"
		}
		broken = broken || !f.Bearable
		if _, err := fmt.Fprintf(v.out, "%s %-10s %s\n  %-10s → %s\n", mark, "tables", f, "", f.Cure); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	if broken {
		return &exit.Error{Code: exit.Failure}
	}
	return nil
}

// refuse says that there is no exclusion to check.
func (v *verification) refuse(format string, why ...any) error {
	_, printed := fmt.Fprintf(v.out, "✗ exclusion  "+format+"\n", why...)
	return &exit.Error{Code: exit.Failure, Err: printed}
}

// tryLock acquires the lock once. Processes that wait through outages would wait for as long as the database refuses it.
func (n *node) tryLock(ctx context.Context, ttl time.Duration) error {
	repository, err := n.flags.Repository(ctx, n.connection, sqllock.RepositoryOptions{TTL: ttl})
	if err != nil {
		return err
	}
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true})
	if err != nil {
		return err
	}
	lease, err := registry.TryLockFor(ctx, lockKey, replicaTimeout)
	if err == nil {
		err = lease.Unlock(ctx)
	}
	if errors.Is(err, sqllock.ErrLockLost) { // whether a lock stays held is what the workers find
		return nil
	}
	return err
}

// awaitTables waits until the tables are there: the last of them was created last.
func (n *node) awaitTables(ctx context.Context) error {
	for began := time.Now(); ; {
		var written bool
		err := n.connection.DB.GetContext(ctx, &written, "SELECT N FROM "+n.flags.Prefix+valueTable)
		if err == nil || ctx.Err() != nil || time.Since(began) > replicaTimeout {
			return err
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// readClocks reads the clocks of all nodes. One that does not answer is taken to be as it was.
func (v *verification) readClocks(ctx context.Context, i int) (err error) {
	for _, n := range v.nodes {
		got, failed := n.connection.ClockDifference(ctx)
		if n.clock[i] = got; failed != nil {
			n.clock[i], err = n.clock[0], failure.As(sqllock.ErrDatabase, "read the clock", failed)
		}
	}
	return err
}

// next records the next event.
func (v *verification) next(ctx context.Context) (e event, err error) {
	limit := v.ttl + outageTimeout
	select {
	case <-ctx.Done():
		return e, context.Cause(ctx)
	case <-time.After(limit):
		return e, fmt.Errorf("the processes have reported nothing within %v: %s", limit, cmp.Or(v.lastError, "no error"))
	case e = <-v.events:
	}
	if e.Overlap {
		v.overlaps++
	}
	switch e.Kind {
	case ready:
		v.idle = append(v.idle, e.from)
	case finished:
		v.entries = append(v.entries, e)
	case failed:
		v.failures, v.lastError = v.failures+1, e.Err
	case hanging, guarding, committed, taken: // for those who await them
	case ended:
		if !e.from.killed {
			return e, e.from.failure()
		}
	}
	return e, nil
}

// allIdle waits until all workers that live wait for an order.
func (v *verification) allIdle(ctx context.Context) error {
	for len(v.idle) < v.living {
		if _, err := v.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// await returns the next event of a worker that is its answer to an order.
func (v *verification) await(ctx context.Context, from *process) (event, error) {
	for {
		if e, err := v.next(ctx); err != nil || e.from == from && e.Kind != ready {
			return e, err
		}
	}
}

// checkGuard has one worker keep a guarded transaction open for longer than its lease lasts. Another one, on another
// node if there is one, waits for the lock meanwhile, and must find what that transaction writes, unless it is refused.
func (v *verification) checkGuard(ctx context.Context) error {
	holder, rival := v.crew.workers[0], v.crew.workers[1]
	v.idle = slices.DeleteFunc(v.idle, func(p *process) bool { return p == holder || p == rival })
	holder.order(orderGuard)
	held, err := v.await(ctx, holder)
	if err != nil {
		return err
	}
	if held.Kind == failed {
		v.guard = verdict{false, "a transaction could not be guarded: " + held.Err}
		v.idle = append(v.idle, rival)
		return v.allIdle(ctx)
	}
	rival.order(orderTake)
	expired := time.Now().Add(held.Left)
	watching, cancel := context.WithDeadline(ctx, expired.Add(heldBackTimeout))
	defer cancel()
	early, err := v.await(watching, rival)
	if err != nil && (ctx.Err() != nil || watching.Err() == nil) {
		return err
	}
	holder.order(orderCommit)
	done, late := event{}, early
	for done.Kind == "" || late.Kind == "" {
		e, err := v.next(ctx)
		switch {
		case err != nil:
			return err
		case e.Kind == ready:
		case e.from == holder:
			done = e
		case e.from == rival:
			late = e
		}
	}
	v.guard = guardVerdict(done, early, late)
	return v.allIdle(ctx)
}

// contend lets the workers acquire the lock in turns. After a third of the time, one is killed while it has it.
func (v *verification) contend(ctx context.Context, lasting time.Duration) error {
	began, chosen := time.Now(), false
	for time.Since(began) < lasting || v.killedAt.IsZero() {
		for _, p := range v.idle {
			if hang := !chosen && time.Since(began) > lasting/3; hang {
				chosen = true
				p.order(orderHang)
			} else {
				p.order(orderWork)
			}
		}
		v.idle = nil
		e, err := v.next(ctx)
		switch {
		case err != nil:
			return err
		case e.Kind == hanging:
			v.killedAt, v.expiry = time.Now(), e.At.Add(e.Left)
			e.from.kill()
			v.living--
		case e.Kind == failed && chosen && v.killedAt.IsZero():
			chosen = false // it may have been the one that was to be killed
		}
	}
	return v.allIdle(ctx)
}
