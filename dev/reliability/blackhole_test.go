//go:build linux

package reliability

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/wire"
)

const (
	blackHoleTTL = 2 * time.Second
	// promptly is how long a call that must not hang may take on a machine that stands still for seconds. A call
	// that hangs does so for good.
	promptly = 2 * time.Minute
	// rivalTimeout is how long a rival may wait for a row that has no holder.
	rivalTimeout = 15 * time.Second
)

// TestBlackHole drops all data of the holder's network. It measures how long the lock has no
// holder: from the end of the holder's context until the rival sent its acquire statement. A
// negative time would mean two holders.
func TestBlackHole(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "black hole", "database, driver", "trials", "shortest", "median", "longest", "two holders", "rival held up")
	each(t, servers, func(t *testing.T, place int, c cell) {
		b := c.newBase(t)
		rivals := b.registry(t, open(t, b.driver, b.dsn, 20), sqllock.RegistryOptions{TTL: blackHoleTTL})
		var all outcome
		n := size(4, 200)
		t.Cleanup(func() {
			least, median, greatest := spread(all.gaps)
			figures.add(place, c.name, len(all.gaps), least, median, greatest, all.negative, all.heldUp)
		})
		for i := range n {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				b.blackHole(t, rivals, &all)
			})
		}
	})
}

// An outcome collects the results of trials.
type outcome struct {
	mu               sync.Mutex
	gaps             []time.Duration
	negative, heldUp int
}

func (o *outcome) add(gap time.Duration, heldUp bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gaps = append(o.gaps, gap)
	if gap < 0 {
		o.negative++
	}
	if heldUp {
		o.heldUp++
	}
}

// blackHole is one trial.
func (b *base) blackHole(t *testing.T, rivals *sqllock.Registry, all *outcome) {
	t.Helper()
	n, dsn := wire.Through(t, b.dsn)
	lease := acquire(t, b.renewing(t, open(t, b.driver, dsn, 2), blackHoleTTL), t.Name())
	ended := awaitEnd(lease)
	won := rival(t, rivals, blackHoleTTL, lease.Key())
	pause(t.Context(), rand.N(blackHoleTTL))
	n.Silence()
	at := <-ended
	b.afterLoss(t, lease)
	heldUp := false
	limit := time.NewTimer(rivalTimeout)
	defer limit.Stop()
	var w win
	select {
	case w = <-won:
	case <-limit.C:
		// The network failed between a statement and its commit: the server still
		// waits for the client.
		heldUp = true
		n.LeadTo("")
		w = <-won
	}
	b.settle(t, lease, at, w)
	all.add(w.sent.Sub(at), heldUp)
}

// awaitEnd sends the time at which the lease's context has ended.
func awaitEnd(lease *sqllock.Lease) <-chan time.Time {
	ended := make(chan time.Time, 1)
	done := lease.Context().Done()
	go func() {
		<-done
		ended <- time.Now()
	}()
	return ended
}

// A win is an acquisition, and the time at which it was requested.
type win struct {
	lease *sqllock.Lease
	sent  time.Time
}

// rival waits for a lock, and retries after errors of the server.
func rival(t *testing.T, r *sqllock.Registry, ttl time.Duration, key string) <-chan win {
	t.Helper()
	lock, won := obtain(t, r, key), make(chan win, 1)
	ctx := t.Context()
	go func() {
		for ctx.Err() == nil {
			lease, err := lock.Lock(ctx)
			if err == nil {
				won <- win{lease, sentAt(lease, ttl, time.Now())}
				return
			}
			pause(ctx, 10*time.Millisecond)
		}
		close(won)
	}()
	return won
}

// afterLoss makes the calls of a holder that does not know yet that its lease is lost.
func (b *base) afterLoss(t *testing.T, lease *sqllock.Lease) {
	t.Helper()
	lost(t, "cause", context.Cause(lease.Context()))
	tx := check.Value(b.db.Beginx())(t)
	defer tx.Rollback()
	began := time.Now()
	lost(t, "Renew", lease.Renew(t.Context()))
	lost(t, "Guard", lease.Guard(t.Context(), tx))
	lost(t, "Unlock", lease.Unlock(t.Context()))
	if took := time.Since(began); took > promptly {
		t.Errorf("calls of a lost lease took %v", took)
	}
}

// settle checks that the rival has acquired after the holder's lease ended, and that no call
// of the holder has affected the rival's lease.
func (b *base) settle(t *testing.T, lease *sqllock.Lease, at time.Time, w win) {
	t.Helper()
	if w.lease == nil {
		t.Fatal("the rival has not acquired the lock")
	}
	if gap := w.sent.Sub(lease.Deadline()); gap < 0 {
		t.Errorf("the rival asked %v before the holder's deadline", -gap)
	}
	// The context of a process that does not run ends when it runs again.
	spoilt := watch.StoodStill(lease.Deadline(), at) > at.Sub(lease.Deadline())/2
	if gap := w.sent.Sub(at); gap < 0 && !spoilt {
		t.Errorf("the rival asked %v before the holder's context had ended", -gap)
	}
	if w.lease.Token() <= lease.Token() {
		t.Errorf("token %d after %d", w.lease.Token(), lease.Token())
	}
	lost(t, "Unlock", lease.Unlock(t.Context()))
	if w.lease.Context().Err() == nil { // otherwise the machine was too busy
		if err := w.lease.Unlock(t.Context()); err != nil && time.Now().Before(w.lease.Deadline()) {
			t.Errorf("the rival's lease: %v", err)
		}
	}
}

// TestCallsIntoABlackHole makes calls to the database just after the network has started to
// drop all data, while the lease lasts. Each call must return at the end of its context or
// of the lease, although lib/pq does not check contexts while it waits for a response, and
// go-sql-driver/mysql does not during COMMIT.
func TestCallsIntoABlackHole(t *testing.T) {
	inParallel(t)
	each(t, servers, func(t *testing.T, _ int, c cell) {
		b := c.newBase(t)
		for name, call := range callsInto {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				withTTL(t, blackHoleTTL, func(ttl time.Duration) bool { return b.callInto(t, call, ttl) })
			})
		}
	})
}

// An inFlight is what a call into a black hole is made with.
type inFlight struct {
	network  *wire.Proxy
	db       *sql.DB // over the network
	registry *sqllock.Registry
	lease    *sqllock.Lease
	tx       *sql.Tx
	key      string // of no lock yet
}

// A callInto may take until the deadline of the lease.
type callInto struct {
	minHold time.Duration // of the lease
	call    func(context.Context, *inFlight) error
	// acquires: the call acquires a lock before the network falls silent, and has it do so itself.
	acquires bool
}

var callsInto = map[string]callInto{
	"Renew":  {call: func(ctx context.Context, f *inFlight) error { return f.lease.Renew(ctx) }},
	"Unlock": {call: func(ctx context.Context, f *inFlight) error { return f.lease.Unlock(ctx) }},
	"Unlock with a minimum hold": {
		minHold: time.Minute,
		call:    func(ctx context.Context, f *inFlight) error { return f.lease.Unlock(ctx) },
	},
	"Guard": {call: func(ctx context.Context, f *inFlight) error { return f.lease.Guard(ctx, f.tx) }},
	"TryLock": {call: func(ctx context.Context, f *inFlight) error {
		ctx, cancel := context.WithDeadline(ctx, f.lease.Deadline())
		defer cancel()
		_, err := f.registry.TryLock(ctx, f.key)
		return err
	}},
	"Close": {call: func(ctx context.Context, f *inFlight) error {
		ctx, cancel := context.WithDeadline(ctx, f.lease.Deadline())
		defer cancel()
		return f.registry.Close(ctx)
	}},
	"Close after Unlock": {call: func(ctx context.Context, f *inFlight) error {
		_ = f.lease.Unlock(ctx) // it leaves a row for Close
		ctx, cancel := context.WithTimeout(ctx, blackHoleTTL)
		defer cancel()
		return f.registry.Close(ctx)
	}},
	"ExecuteLockedTx, at its COMMIT": executesTx(func(context.Context, *sql.Tx) error { return nil }),
	"ExecuteLockedTx, in the application's work": executesTx(func(ctx context.Context, _ *sql.Tx) error {
		<-ctx.Done()
		return ctx.Err()
	}),
}

// executesTx returns a call of ExecuteLockedTx whose network falls silent while its function runs.
func executesTx(work func(context.Context, *sql.Tx) error) callInto {
	return callInto{acquires: true, call: func(ctx context.Context, f *inFlight) error {
		return f.registry.ExecuteLockedTx(ctx, f.key, f.db, nil, func(ctx context.Context, tx *sql.Tx) error {
			f.network.Silence()
			return work(ctx, tx)
		})
	}}
}

// callInto is false if the lease ended before the call did all that it has to do under it.
func (b *base) callInto(t *testing.T, c callInto, ttl time.Duration) (longEnough bool) {
	t.Helper()
	n, dsn := wire.Through(t, b.dsn)
	db := open(t, b.driver, dsn, 3)
	f := &inFlight{network: n, db: db.DB, registry: b.registry(t, db, sqllock.RegistryOptions{TTL: ttl}), key: fmt.Sprint(t.Name(), ttl, ", another")}
	lock := obtain(t, f.registry, fmt.Sprint(t.Name(), ttl))
	if c.minHold > 0 {
		lock = lock.WithMinHold(c.minHold)
	}
	f.lease = locked(t, lock)
	var err error
	f.tx, err = f.db.BeginTx(t.Context(), nil)
	must(t, err)
	if !c.acquires {
		n.Silence()
	}
	answer := check.Begin(func() error { return c.call(t.Context(), f) })
	limit := time.NewTimer(promptly)
	defer limit.Stop()
	select {
	case err := <-answer:
		longEnough = err != nil || time.Now().Before(f.lease.Deadline())
		if err == nil && longEnough {
			t.Error("no error, although the server cannot be reached")
		}
		t.Logf("%v after the deadline of the lease: %v", time.Since(f.lease.Deadline()).Round(time.Millisecond), err)
	case <-limit.C:
		t.Errorf("the call has not returned after %v", promptly)
		longEnough = true
	}
	n.LeadTo("") // otherwise the application's own rollback would hang, too
	_ = f.tx.Rollback()
	return longEnough
}
