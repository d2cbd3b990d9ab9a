//go:build linux

package reliability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
)

// TestTokensRiseAcrossCrashes repeatedly kills and restarts the server while locks are
// acquired.
func TestTokensRiseAcrossCrashes(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "crashes", "database, driver", "crashes of the server", "acquisitions", "tokens that did not rise")
	each(t, servers, func(t *testing.T, place int, c cell) {
		b, s := c.newServer(t)
		f, n := newFence(), size(2, 20)
		for range n {
			f.during(t, b, b.dsn, func() {
				must(t, s.Kill())
				must(t, s.Restart(t.Context()))
			})
		}
		figures.add(place, c.name, n, f.all, f.check(t))
	})
}

// TestTokensRiseAcrossFailover kills a primary while locks are acquired, and continues on its
// synchronous replica.
func TestTokensRiseAcrossFailover(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "failover", "database, driver", "failovers", "acquisitions", "tokens that did not rise")
	each(t, servers, func(t *testing.T, place int, c cell) {
		n, all, wrong := size(1, 5), 0, 0
		for range n {
			f := newFence()
			primary, replica, err := c.pair(t.Context(), scratch(t))
			started(t, err, primary, replica)
			b := c.migrated(t, primary.DSN())
			f.during(t, b, primary.DSN(), func() { must(t, primary.Kill()) })
			must(t, c.promote(replica, t.Context()))
			f.during(t, b, replica.DSN(), func() {})
			all, wrong = all+f.all, wrong+f.check(t)
		}
		figures.add(place, c.name, n, all, wrong)
	})
}

// A fence is a storage system that remembers the highest token.
type fence struct {
	mu         sync.Mutex
	last       map[string]int64
	all, wrong int
	enough     func() // if not nil, called for each acquisition
}

func newFence() *fence { return &fence{last: make(map[string]int64)} }

// pass records the token of a lease if the lease is still valid. It holds a mutex, so no later
// holder can pass first.
func (f *fence) pass(lease *sqllock.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if lease.Context().Err() != nil {
		return
	}
	if lease.Token() <= f.last[lease.Key()] {
		f.wrong++
	}
	f.last[lease.Key()] = lease.Token()
	f.all++
	f.enough()
}

func (f *fence) check(t *testing.T) int {
	t.Helper()
	if f.wrong > 0 {
		t.Errorf("%d of %d tokens did not rise", f.wrong, f.all)
	}
	return f.wrong
}

// during acquires locks from several goroutines while something happens to the server: some
// before, and some after it, if it is still the same server.
func (f *fence) during(t *testing.T, b *base, dsn string, event func()) {
	t.Helper()
	const some = 100
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := f.await(some)
	var all sync.WaitGroup
	for range 2 { // two registries stand for two processes
		r := b.registry(t, open(t, b.driver, dsn, 4), sqllock.RegistryOptions{TTL: time.Second, IdleBetweenTries: 10 * time.Millisecond})
		for range 4 {
			all.Go(func() {
				for ctx.Err() == nil {
					f.visit(ctx, r)
				}
			})
		}
	}
	reached(t, before)
	pause(ctx, rand.N(50*time.Millisecond))
	after := f.await(some)
	event()
	if answers(t.Context(), b.driver, dsn) {
		reached(t, after)
	}
	cancel()
	all.Wait()
}

// visit acquires a lock and passes the fence.
func (f *fence) visit(ctx context.Context, r *sqllock.Registry) {
	lock, err := r.Obtain(fmt.Sprint(rand.N(8)))
	if err != nil {
		return
	}
	lease, err := lock.TryLockFor(ctx, 3*time.Second)
	if err != nil {
		pause(ctx, 5*time.Millisecond) // the server may be down
		return
	}
	f.pass(lease)
	_ = lease.Unlock(ctx) // the server may be down
}

// await returns a channel that is closed after the given number of further acquisitions.
func (f *fence) await(n int) <-chan struct{} {
	done := make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enough = func() {
		if n--; n == 0 {
			close(done)
		}
	}
	return done
}

func reached(t *testing.T, done <-chan struct{}) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		t.Fatal("no lock is acquired")
	}
}

func answers(ctx context.Context, driver, dsn string) bool {
	ctx, cancel := context.WithTimeout(ctx, promptly)
	defer cancel()
	db, err := sqlx.Open(driver, dsn)
	if err != nil {
		return false
	}
	defer db.Close()
	return db.PingContext(ctx) == nil
}
