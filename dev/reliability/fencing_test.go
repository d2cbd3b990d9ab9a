//go:build linux

package reliability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/child"
)

// TestFencing runs processes that acquire random locks, kills some of them and starts others.
// The tokens that the holders have recorded for a key must rise.
func TestFencing(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "fencing", "database, driver", "acquisitions", "processes at once", "killed", "time",
		"tokens that did not rise")
	cells := append(servers[:len(servers):len(servers)], sqlite)
	each(t, cells, func(t *testing.T, place int, c cell) {
		f := c.newBase(t).newFleet(t, 8)
		began, killed, acquisitions := time.Now(), 0, 500
		if *full {
			acquisitions = 105_000
		}
		f.start()
		for f.acquisitions() < acquisitions || killed < 3 {
			pause(t.Context(), 100*time.Millisecond+rand.N(500*time.Millisecond))
			if t.Context().Err() != nil {
				t.Fatal(t.Context().Err())
			}
			f.replace(rand.N(len(f.children)))
			killed++
		}
		f.end()
		all, wrong := f.rising()
		figures.add(place, c.name, all, len(f.children), killed, time.Since(began).Round(time.Second), wrong)
	})
}

// TestTokensRiseAcrossCrashes kills and restarts the server again and again while locks are acquired.
func TestTokensRiseAcrossCrashes(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "crashes", "database, driver", "crashes of the server", "acquisitions", "tokens that did not rise")
	each(t, servers, func(t *testing.T, place int, c cell) {
		b, s := c.newServer(t)
		f, n := b.newFleet(t, 2), size(2, 20)
		f.start()
		for range n {
			f.work()
			must(t, s.Kill())
			must(t, s.Restart(t.Context()))
		}
		f.work()
		f.end()
		all, wrong := f.rising()
		figures.add(place, c.name, n, all, wrong)
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
			primary, replica, err := c.pair(t.Context(), scratch(t))
			started(t, err, primary, replica)
			f := c.migrated(t, primary.DSN()).newFleet(t, 2)
			f.start()
			f.work()
			must(t, primary.Kill())
			f.end()
			must(t, c.promote(replica, t.Context()))
			f.dsn = replica.DSN()
			f.start()
			f.work()
			f.end()
			more, bad := f.rising()
			all, wrong = all+more, wrong+bad
		}
		figures.add(place, c.name, n, all, wrong)
	})
}

const fencingTTL = time.Second

// A fleet is processes that acquire random locks, and record their tokens.
type fleet struct {
	*base
	t        *testing.T
	notes    string // a directory with the witness of each key
	children []*child.Process
}

// newFleet returns a fleet whose processes have to be started.
func (b *base) newFleet(t *testing.T, processes int) *fleet {
	t.Helper()
	return &fleet{base: b, t: t, notes: t.TempDir(), children: make([]*child.Process, processes)}
}

func (f *fleet) start() {
	f.t.Helper()
	for i := range f.children {
		f.startOne(i)
	}
}

func (f *fleet) startOne(i int) {
	f.t.Helper()
	f.children[i] = startChild(f.t, task{Role: "fenced holders", Kind: f.name, DSN: f.dsn, TTL: fencingTTL, Dir: f.notes})
	f.children[i].Want("working")
}

// replace kills a process, and starts another one.
func (f *fleet) replace(i int) {
	f.t.Helper()
	f.kill(f.children[i])
	f.startOne(i)
}

// end kills all processes.
func (f *fleet) end() {
	f.t.Helper()
	for _, c := range f.children {
		f.kill(c)
	}
}

// work waits until the processes have acquired some more locks, and for a random moment.
func (f *fleet) work() {
	f.t.Helper()
	const some = 100
	for want, limit := f.acquisitions()+some, time.Now().Add(promptly); f.acquisitions() < want; pause(f.t.Context(), 5*time.Millisecond) {
		if time.Now().After(limit) {
			f.t.Fatal("no lock is acquired")
		}
	}
	pause(f.t.Context(), rand.N(50*time.Millisecond))
}

// kill kills a process, which must not have ended by itself.
func (f *fleet) kill(c *child.Process) {
	f.t.Helper()
	if c.HasEnded() {
		f.t.Fatal("a child has ended by itself")
	}
	c.Kill()
}

// witnessOf is the witness of a key.
func witnessOf(dir, key string) witness { return witness(filepath.Join(dir, key)) }

// recorded returns the number of tokens that holders have recorded, and how many of them were not higher
// than all earlier ones of their key.
func (f *fleet) recorded() (all, wrong int) {
	f.t.Helper()
	for key := range fencedKeys {
		seen, err := witnessOf(f.notes, fmt.Sprint(key)).read()
		must(f.t, err)
		all, wrong = all+seen.Tokens, wrong+len(seen.Violations)
	}
	return all, wrong
}

func (f *fleet) acquisitions() int {
	f.t.Helper()
	all, _ := f.recorded()
	return all
}

// rising is recorded at the end. A token that did not rise fails the test.
func (f *fleet) rising() (all, wrong int) {
	f.t.Helper()
	if all, wrong = f.recorded(); wrong > 0 {
		f.t.Errorf("%d of %d tokens did not rise", wrong, all)
	}
	return all, wrong
}

const (
	fencedKeys       = 32
	fencedGoroutines = 4
)

// The goroutines of a child acquire random locks until it is killed, and record their tokens.
func fencedHolders(ctx context.Context, do task, _ <-chan string) error {
	_, registry, err := do.open(ctx, fencedGoroutines, sqllock.RegistryOptions{IdleBetweenTries: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	fmt.Println("working")
	var all sync.WaitGroup
	failures := make(chan error, fencedGoroutines)
	for range fencedGoroutines {
		all.Go(func() {
			for {
				if err := fenced(ctx, registry, do); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	return <-failures
}

// fenced acquires one lock, records its token and usually releases it.
func fenced(ctx context.Context, r *sqllock.Registry, do task) error {
	n := rand.N(fencedKeys)
	key := fmt.Sprint(n)
	lock, err := r.Obtain(key)
	if err != nil {
		return err
	}
	if rand.N(500) == 0 {
		lock = lock.WithMinHold(do.TTL / 2)
	}
	var lease *sqllock.Lease
	if rand.N(8) == 0 {
		lease, err = lock.TryLockFor(ctx, do.TTL/4)
	} else {
		lease, err = lock.TryLock(ctx)
	}
	switch {
	case errors.Is(err, sqllock.ErrNotAcquired):
		return nil
	case errors.Is(err, sqllock.ErrDatabase): // the server is down, or too busy with other processes
		pause(ctx, 5*time.Millisecond)
		return nil
	case err != nil:
		return err
	}
	if err := witnessOf(do.Dir, key).record(lease); err != nil {
		return err
	}
	switch rand.N(500) {
	case 0: // let it expire
	default:
		_ = lease.Unlock(ctx) // on a busy machine the lease may be lost
	}
	return nil
}
