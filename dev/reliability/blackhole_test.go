//go:build linux

package reliability

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/wire"
)

const (
	// real time: its end is what is measured; locked acquires again where the machine was too slow.
	blackHoleTTL = 2 * time.Second
	// promptly is how long a call that must not hang may take on a machine that stands still for seconds. A call
	// that hangs does so for good.
	promptly = 2 * time.Minute
)

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
				// real time: calls end with it; withTTL repeats the call with a longer one where the machine was too slow.
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
		// real time: the call must not outlast its context by much: promptly, of two minutes, judges that.
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
	f := &inFlight{network: n, db: db.DB, registry: b.registry(t, db, sqllock.RegistryOptions{TTL: ttl, NoRenew: true}), key: fmt.Sprint(t.Name(), ttl, ", another")}
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
