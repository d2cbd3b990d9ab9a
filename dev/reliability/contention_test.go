//go:build linux

package reliability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// TestContention has processes compete for joint locks, for a semaphore and for a read-write lock,
// without a pause. A witness that knows nothing of the locks sees who holds what at a time. Each
// caller must get its turn. How long callers wait is measured by the benchmark.
func TestContention(t *testing.T) {
	inParallel(t)
	each(t, append(servers[1:3:3], sqlite), func(t *testing.T, _ int, c cell) {
		for _, competed := range competitions {
			t.Run(competed.name, func(t *testing.T) {
				inParallel(t)
				c.newBase(t).compete(t, competed)
			})
		}
	})
}

// compete runs processes that compete for a while.
func (b *base) compete(t *testing.T, competed competition) {
	t.Helper()
	const processes, lasts = 4, time.Second
	do := task{Role: "contender", Kind: b.name, DSN: b.dsn, TTL: contentionTTL, Dir: t.TempDir(), Competition: competed.name, Lasts: lasts}
	children := make([]*child.Process, processes)
	for i := range children {
		do.Number = i
		children[i] = startChild(t, do)
	}
	for _, c := range children {
		c.Want("working")
	}
	for _, c := range children {
		c.Tell("go")
	}
	for _, c := range children {
		c.Want("done")
	}
	violations, err := do.witness().violations()
	must(t, err)
	if n := len(violations); n > 0 {
		t.Errorf("%d violations: %s", n, strings.Join(violations[:min(n, 10)], "; "))
	}
}

const (
	// contentionCallers is how many callers a process has.
	contentionCallers = 2
	// contentionTTL is longer than any machine stands still.
	contentionTTL = 5 * time.Minute
	// contentionHold is for how long a lock is held at most.
	contentionHold = 10 * time.Millisecond
	// contentionEnd is how long a caller waits when the others have stopped: for what hangs.
	contentionEnd = 10 * time.Minute
)

// A wish is what a caller wants next.
type wish struct {
	what    string
	takes   map[string]int // in the eyes of the witness
	fences  bool           // whether its tokens rise
	acquire func(context.Context) (*sqllock.Lease, error)
}

// A competition is what processes compete for.
type competition struct {
	name     string
	capacity int // of the witness
	// open returns a function that chooses at random what a caller wants next.
	open func(*sqllock.Registry) (choose func() (wish, error), err error)
}

var competitions = []competition{
	{"joint locks", 1, jointLocks},
	{"semaphore", permits, permitsOfOne},
	{"read-write lock", everything, readersAndWriters},
	{"one plain lock", 1, plainLock},
}

// jointLocks are of one to three keys out of six, in any order.
func jointLocks(registry *sqllock.Registry) (func() (wish, error), error) {
	return func() (wish, error) {
		const keys, most = 6, 3
		n := 1 + rand.N(most)
		w := wish{what: fmt.Sprintf("a lock of %d keys", n), takes: make(map[string]int), fences: true}
		chosen := make([]string, n)
		for i, number := range rand.Perm(keys)[:n] {
			chosen[i] = fmt.Sprint("account ", number)
			w.takes[chosen[i]] = 1
		}
		lock, err := registry.ObtainAll(chosen...)
		if err == nil {
			w.acquire = lock.Lock
		}
		return w, err
	}, nil
}

const permits = 3

func permitsOfOne(registry *sqllock.Registry) (func() (wish, error), error) {
	s, err := semaphore.New(registry, "renders", permits)
	if err != nil {
		return nil, err
	}
	return func() (wish, error) {
		n := 1 + rand.N(permits)
		return wish{
			what: fmt.Sprintf("a call for %d permits", n), takes: map[string]int{"permits": n}, fences: true,
			acquire: func(ctx context.Context) (*sqllock.Lease, error) { return s.Acquire(ctx, n) },
		}, nil
	}, nil
}

// everything is what a writer takes. A reader takes 1.
const everything = rwlock.MaxReaders

func readersAndWriters(registry *sqllock.Registry) (func() (wish, error), error) {
	l, err := rwlock.New(registry, "prices")
	if err != nil {
		return nil, err
	}
	return func() (wish, error) {
		const writers = 4 // one call in so many writes
		if rand.N(writers) == 0 {
			return wish{"a writer", map[string]int{"prices": everything}, true, l.Lock}, nil
		}
		return wish{"a reader", map[string]int{"prices": 1}, false, l.RLock}, nil
	}, nil
}

func plainLock(registry *sqllock.Registry) (func() (wish, error), error) {
	lock, err := registry.Obtain("report")
	return func() (wish, error) { return wish{"a plain lock", map[string]int{"report": 1}, true, lock.Lock}, nil }, err
}

// A contender is a process that competes until its time is over.
func contender(ctx context.Context, do task, told <-chan string) error {
	const connections = 4
	db, registry, err := do.open(ctx, connections, sqllock.RegistryOptions{AutoRenew: true})
	if err != nil {
		return err
	}
	if err := errors.Join(compete(ctx, registry, do, told), registry.Close(ctx), db.Close()); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

func (do task) competition() competition {
	for _, c := range competitions {
		if c.name == do.Competition {
			return c
		}
	}
	panic(do.Competition)
}

func (do task) witness() witness {
	return witness{filepath.Join(do.Dir, "witness"), do.competition().capacity}
}

// compete has all callers of this process compete, from the test's word on.
func compete(ctx context.Context, registry *sqllock.Registry, do task, told <-chan string) error {
	choose, err := do.competition().open(registry)
	if err != nil {
		return err
	}
	fmt.Println("working")
	<-told
	ctx, cancel := context.WithTimeout(ctx, do.Lasts+contentionEnd)
	defer cancel()
	end := time.Now().Add(do.Lasts)
	var callers sync.WaitGroup
	failures := make([]error, contentionCallers)
	for caller := range failures {
		callers.Go(func() {
			var err error
			for n := 0; err == nil && (n == 0 || time.Now().Before(end)); n++ {
				err = competeOnce(ctx, choose, do.witness(), fmt.Sprint(do.Number, "/", caller, "/", n))
			}
			failures[caller] = err
		})
	}
	callers.Wait()
	return errors.Join(failures...)
}

// competeOnce acquires what a caller wants, holds it in the witness's sight, and releases it.
func competeOnce(ctx context.Context, choose func() (wish, error), w witness, id string) error {
	want, err := choose()
	if err != nil {
		return err
	}
	asked := time.Now()
	lease, err := want.acquire(ctx)
	for noAnswer(err) && ctx.Err() == nil { // the server or this machine had too much to do
		lease, err = want.acquire(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s has waited for %v: %w", want.what, time.Since(asked), err)
	}
	s := stay{ID: id, Takes: want.takes, Tokens: make(map[string]int64)}
	if want.fences {
		for _, row := range lease.Keys() {
			s.Tokens[row] = lease.Token()
		}
	}
	err = w.enter(s)
	if err == nil {
		pause(ctx, rand.N(contentionHold))
		err = w.leave(s)
	}
	unlocked := lease.Unlock(ctx)
	if noAnswer(unlocked) { // the next holder waits until the row is deleted, by this process or at its end
		unlocked = nil
	}
	return errors.Join(err, unlocked)
}
