//go:build linux

package reliability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

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
	kind    string         // of the call
	takes   map[string]int // in the eyes of the witness
	fences  bool           // whether its tokens rise
	acquire func(context.Context) (*sqllock.Lease, error)
}

// A competition is what processes compete for.
type competition struct {
	name     string
	capacity int // of the witness
	kinds    []string
	// open returns a function that chooses at random what a caller wants next.
	open func(*sqllock.Registry) (choose func() (wish, error), err error)
}

var competitions = []competition{
	{"joint locks", 1, keyKinds, jointLocks},
	{"semaphore", len(permitKinds), permitKinds, permitsOfOne},
	{"read-write lock", everything, []string{"read", "write"}, readersAndWriters},
	{"one plain lock, to compare", 1, []string{"lock"}, plainLock},
}

var (
	keyKinds    = []string{"1 key", "2 keys", "3 keys"}
	permitKinds = []string{"1 permit", "2 permits", "3 permits"}
)

// jointLocks are of one to three keys out of six, in any order.
func jointLocks(registry *sqllock.Registry) (func() (wish, error), error) {
	return func() (wish, error) {
		const keys = 6
		n := 1 + rand.N(len(keyKinds))
		w := wish{kind: keyKinds[n-1], takes: make(map[string]int), fences: true}
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

func permitsOfOne(registry *sqllock.Registry) (func() (wish, error), error) {
	s, err := semaphore.New(registry, "renders", len(permitKinds))
	if err != nil {
		return nil, err
	}
	return func() (wish, error) {
		n := 1 + rand.N(len(permitKinds))
		return wish{
			kind: permitKinds[n-1], takes: map[string]int{"permits": n}, fences: true,
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
			return wish{"write", map[string]int{"prices": everything}, true, l.Lock}, nil
		}
		return wish{"read", map[string]int{"prices": 1}, false, l.RLock}, nil
	}, nil
}

func plainLock(registry *sqllock.Registry) (func() (wish, error), error) {
	lock, err := registry.Obtain("report")
	return func() (wish, error) { return wish{"lock", map[string]int{"report": 1}, true, lock.Lock}, nil }, err
}

// waits are how long the calls of a kind have waited.
type waits map[string][]time.Duration

// A contender is a process that competes until its time is over. Its waits go to a file.
func contender(ctx context.Context, do task, told <-chan string) error {
	const connections = 4
	db, registry, err := do.open(ctx, connections, sqllock.RegistryOptions{AutoRenew: true})
	if err != nil {
		return err
	}
	all, err := compete(ctx, registry, do, told)
	text, failure := json.Marshal(all)
	if failure == nil {
		failure = os.WriteFile(do.waitsPath(), text, 0o600)
	}
	if err := errors.Join(err, failure, registry.Close(ctx), db.Close()); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

func (do task) waitsPath() string { return filepath.Join(do.Dir, fmt.Sprint("waits ", do.Number)) }

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
func compete(ctx context.Context, registry *sqllock.Registry, do task, told <-chan string) (waits, error) {
	choose, err := do.competition().open(registry)
	if err != nil {
		return nil, err
	}
	fmt.Println("working")
	<-told
	ctx, cancel := context.WithTimeout(ctx, do.Lasts+contentionEnd)
	defer cancel()
	end := time.Now().Add(do.Lasts)
	var (
		callers  sync.WaitGroup
		mu       sync.Mutex
		all      = make(waits)
		failures []error
	)
	for caller := range contentionCallers {
		callers.Go(func() {
			own := make(waits)
			var err error
			for n := 0; err == nil && (n == 0 || time.Now().Before(end)); n++ {
				err = competeOnce(ctx, choose, do.witness(), fmt.Sprint(do.Number, "/", caller, "/", n), own)
			}
			mu.Lock()
			defer mu.Unlock()
			for kind, some := range own {
				all[kind] = append(all[kind], some...)
			}
			failures = append(failures, err)
		})
	}
	callers.Wait()
	return all, errors.Join(failures...)
}

// competeOnce acquires what a caller wants, holds it in the witness's sight, and releases it.
func competeOnce(ctx context.Context, choose func() (wish, error), w witness, id string, own waits) error {
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
		return fmt.Errorf("%s has waited for %v: %w", want.kind, time.Since(asked), err)
	}
	own[want.kind] = append(own[want.kind], time.Since(asked))
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
