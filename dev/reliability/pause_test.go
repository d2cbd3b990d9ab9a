//go:build linux

package reliability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
)

const pauseTTL = time.Second

// TestPause stops the process of a holder for longer than the time-to-live, as closing a laptop
// or a hypervisor does. When it continues, it must detect the loss before it writes:
// immediately if it checks the lease's context, and in any case if it guards its transaction.
// The control group shows that without Guard a holder that was stopped after the check
// overwrites the value of the next holder.
func TestPause(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "pause", "database, driver", "transaction", "stopped", "trials",
		"the context knew first", "writes", "writes of stale holders")
	kinds := []struct {
		guarded, transaction bool
		share                int // of the trials
	}{{true, false, 2}, {true, true, 1}, {false, false, 1}}
	each(t, servers, func(t *testing.T, place int, c cell) {
		b := c.newBase(t)
		b.createRegister(t)
		rivals := b.registry(t, open(t, b.driver, b.dsn, 20), sqllock.RegistryOptions{TTL: 30 * time.Second})
		for i, kind := range kinds {
			p := &pauses{base: b, rivals: rivals, guarded: kind.guarded, transaction: kind.transaction}
			name := fmt.Sprintf("guarded=%t, transaction=%t", kind.guarded, kind.transaction)
			t.Run(name, func(t *testing.T) {
				t.Cleanup(func() { p.report(t, figures, len(kinds)*place+i) })
				for n := range size(2*kind.share, 40*kind.share) {
					t.Run(fmt.Sprint(n), func(t *testing.T) {
						t.Parallel()
						withTTL(t, pauseTTL, func(ttl time.Duration) bool { return p.trial(t, ttl) })
					})
				}
			})
		}
	})
}

// pauses are the trials of one kind on one database.
type pauses struct {
	*base
	rivals               *sqllock.Registry
	guarded, transaction bool

	mu                          sync.Mutex
	trials, knew, writes, stale int
}

// running limits the number of concurrent processes, since each needs some CPU time.
var running = make(chan struct{}, 12)

// trial is false if the holder has lost its lease before it was stopped.
func (p *pauses) trial(t *testing.T, ttl time.Duration) (longEnough bool) {
	t.Helper()
	key := fmt.Sprint(t.Name(), ttl)
	running <- struct{}{}
	defer func() { <-running }()
	p.openAccount(t, key)
	c := startChild(t, task{
		Role: "guarded writer", Kind: p.name, DSN: p.dsn, TTL: ttl, Key: key,
		Guarded: p.guarded, Transaction: p.transaction,
	})
	defer c.Kill()
	c.Await("token")
	if word, _ := c.Await("working", "ended"); word == "ended" {
		return false
	}
	if p.atRandom() {
		pause(t.Context(), rand.N(pauseTTL/4))
	} else if word, _ := c.Await("here", "ended"); word == "ended" {
		return false
	}
	if !c.Suspend() {
		return false
	}
	wokeUp := p.takeOver(t, c, key, ttl)
	var how string
	var written int
	var alive int64
	var knew, told bool
	_, ended := c.Await("ended")
	must(t, check.ErrorOf(fmt.Sscan(ended, &how, &written, &alive, &knew, &told)))
	p.judge(t, key, knew && alive < wokeUp.UnixNano(), told)
	return true
}

// atRandom reports whether the holder is stopped at a random moment.
func (p *pauses) atRandom() bool { return p.guarded && !p.transaction }

// takeOver lets the rival write and the child continue, in the order that the lock allows. It
// returns when the child has continued.
func (p *pauses) takeOver(t *testing.T, c *child.Process, key string, ttl time.Duration) (wokeUp time.Time) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.rivalWrites(t.Context(), key) }()
	// The rival must wait for a stopped transaction. The test cannot wait for ever; this is
	// much longer than the rival would need. A process that is stopped at random may be
	// within a transaction, too.
	look := 3 * ttl
	if !p.guarded {
		look = promptly
	}
	limit := time.NewTimer(look)
	defer limit.Stop()
	select {
	case err := <-done:
		must(t, err)
		if p.transaction {
			t.Error("the rival did not wait for the guarded transaction")
		}
		done <- nil
	case <-limit.C:
		if !p.guarded {
			t.Fatal("the rival has not acquired the lock")
		}
	}
	wokeUp = time.Now()
	c.Resume()
	if !p.atRandom() {
		c.Tell("go on")
	}
	must(t, <-done)
	return wokeUp
}

// rivalWrites writes as the next holder does, with a guard of its own.
func (p *pauses) rivalWrites(ctx context.Context, name string) error {
	for {
		err := p.rivalWritesOnce(ctx, name)
		if err == nil || ctx.Err() != nil {
			return err
		}
		// A caller that waits long for a pinned row gets an error.
	}
}

func (p *pauses) rivalWritesOnce(ctx context.Context, name string) error {
	lock, err := p.rivals.Obtain(name)
	if err != nil {
		return err
	}
	lease, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Unlock(ctx) //nolint:errcheck // only the write matters
	tx, err := p.db.Beginx()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := lease.Guard(ctx, tx); err != nil {
		return err
	}
	if err := register(ctx, tx, name, lease.Token()); err != nil {
		return err
	}
	return tx.Commit()
}

// judge counts the results and checks what must be true in each trial.
func (p *pauses) judge(t *testing.T, key string, knew, told bool) {
	t.Helper()
	all, stale := p.base.stale(t, key)
	if !knew {
		t.Error("the context of a holder that has continued had not ended")
	}
	if !told {
		t.Error("Unlock did not return the loss")
	}
	if p.guarded && stale > 0 {
		t.Errorf("%d guarded writes of a stale holder", stale)
	}
	if !p.guarded && stale == 0 {
		t.Error("the control group made no stale write, so the trials prove nothing")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trials, p.writes, p.stale = p.trials+1, p.writes+all, p.stale+stale
	if knew {
		p.knew++
	}
}

func (p *pauses) report(t *testing.T, figures *table, place int) {
	t.Helper()
	transaction, stopped := "guarded", "at a random moment"
	if !p.guarded {
		transaction, stopped = "not guarded (control group)", "before it"
	}
	if p.transaction {
		stopped = "inside the transaction"
	}
	figures.add(place, p.name, transaction, stopped, p.trials,
		fmt.Sprintf("%d of %d", p.knew, p.trials), p.writes, p.stale)
}

// A writer holds a lock and writes to the register repeatedly, until the lock is lost.
func guardedWriter(ctx context.Context, do task, told <-chan string) error {
	db, registry, err := do.open(ctx, sqllock.RegistryOptions{AutoRenew: true})
	if err != nil {
		return err
	}
	lease, err := registry.Lock(ctx, do.Key)
	if err != nil {
		return err
	}
	w := &writer{do: do, lease: lease, db: db, told: told}
	fmt.Println("token", lease.Token())
	return w.work(ctx)
}

type writer struct {
	do    task
	lease *sqllock.Lease
	db    *sqlx.DB
	told  <-chan string

	written int
	// alive is the start of the last check that found the lease valid.
	alive time.Time
}

func (w *writer) work(ctx context.Context) error {
	for n := 0; ; n++ {
		asked := time.Now()
		if w.lease.Context().Err() != nil {
			return w.ended(ctx, "asked")
		}
		w.alive = asked
		pause(ctx, 5*time.Millisecond) // the work under the lock
		if !w.do.Guarded {
			w.bePaused()
		}
		switch err := w.write(ctx); {
		case errors.Is(err, sqllock.ErrLockLost):
			return w.ended(ctx, "refused")
		case err != nil && w.lease.Context().Err() != nil:
			return w.ended(ctx, "failed")
		case err != nil:
			return err
		}
		if w.written++; w.written == 1 {
			fmt.Println("working")
		}
	}
}

// ended prints the result. The context of the lease must have ended.
func (w *writer) ended(ctx context.Context, how string) error {
	cause := context.Cause(w.lease.Context()) //nolint:contextcheck // the cause of that context is wanted
	unlock := w.lease.Unlock(ctx)
	fmt.Println("ended", how, w.written, w.alive.UnixNano(),
		errors.Is(cause, sqllock.ErrLockLost), errors.Is(unlock, sqllock.ErrLockLost))
	return nil
}

// write writes the token to the register, in a transaction.
func (w *writer) write(ctx context.Context) error {
	tx, err := w.db.Beginx()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if w.do.Guarded {
		if err := w.lease.Guard(ctx, tx); err != nil {
			return err
		}
	}
	if err := register(ctx, tx, w.do.Key, w.lease.Token()); err != nil {
		return err
	}
	if w.do.Transaction {
		w.bePaused()
	}
	return tx.Commit()
}

// bePaused lets the test stop this process here, after it has written something.
func (w *writer) bePaused() {
	if w.written == 0 {
		return
	}
	fmt.Println("here")
	<-w.told
}
