//go:build linux

package reliability

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

var contention = flag.Duration("contention", 0, "how long processes compete, for the figures of docs/more.md (default: a second, without figures)")

// TestContention has processes compete for joint locks, for a semaphore and for a read-write lock,
// without a pause. A witness that knows nothing of the locks sees who holds what at a time. Each
// process must get its turn.
func TestContention(t *testing.T) {
	inParallel(t)
	totals := newTable(t, "contention", "processes compete for", "database, driver", "processes", "acquisitions", "violations",
		"wait: p99", "longest", "acquisitions of a process: least", "mean")
	byKind := newTable(t, "contention waits", "processes compete for", "who waits", "database, driver", "acquisitions",
		"wait: median", "p99", "longest")
	totals.file, byKind.file = "more.md", "more.md"
	cells := append(servers[1:3:3], sqlite)
	processes, lasts := 4, time.Second
	if *contention > 0 {
		cells, processes, lasts = cells[:2], 8, *contention
	}
	each(t, cells, func(t *testing.T, place int, c cell) {
		for i, competed := range competitions {
			t.Run(competed.name, func(t *testing.T) {
				inParallel(t)
				result := c.newBase(t).compete(t, competed, processes, lasts)
				if *contention == 0 {
					t.Log(result)
					return
				}
				row := len(cells)*i + place
				result.total(totals, row, competed, c.name)
				for k, kind := range competed.kinds {
					result.ofKind(byKind, 100*i+10*k+place, competed.name, kind, c.name)
				}
			})
		}
	})
}

// contest is how long the calls of each process have waited, and what the witness complains of.
type contest struct {
	processes  []waits
	violations []string
}

// compete runs processes that compete for a while.
func (b *base) compete(t *testing.T, competed competition, processes int, lasts time.Duration) contest {
	t.Helper()
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
	pause(t.Context(), lasts)
	var result contest
	for i, c := range children {
		c.Want("done")
		do.Number = i
		text, err := os.ReadFile(do.waitsPath())
		must(t, err)
		own := make(waits)
		must(t, json.Unmarshal(text, &own))
		if own.calls() == 0 {
			t.Errorf("process %d has acquired nothing", i)
		}
		result.processes = append(result.processes, own)
	}
	var err error
	result.violations, err = do.witness().violations()
	must(t, err)
	if n := len(result.violations); n > 0 {
		t.Errorf("%d violations: %s", n, strings.Join(result.violations[:min(n, 10)], "; "))
	}
	return result
}

// calls is how many calls have acquired something.
func (w waits) calls() (n int) {
	for _, some := range w {
		n += len(some)
	}
	return n
}

// of returns how long the calls of some kinds have waited, in any process, the shortest first.
func (c contest) of(kinds []string) (all []time.Duration) {
	for _, own := range c.processes {
		for _, kind := range kinds {
			all = append(all, own[kind]...)
		}
	}
	slices.Sort(all)
	return all
}

// String returns the number of acquisitions of each process.
func (c contest) String() string {
	calls := make([]int, len(c.processes))
	for i, own := range c.processes {
		calls[i] = own.calls()
	}
	return fmt.Sprintf("%d acquisitions", calls)
}

// total adds the row of all calls.
func (c contest) total(figures *table, place int, competed competition, cell string) {
	all, least := 0, c.processes[0].calls()
	for _, own := range c.processes {
		all, least = all+own.calls(), min(least, own.calls())
	}
	_, p99, longest := tail(c.of(competed.kinds))
	figures.add(place, competed.name, cell, len(c.processes), all, len(c.violations), p99, longest, least, all/len(c.processes))
}

// ofKind adds the row of one kind of call.
func (c contest) ofKind(figures *table, place int, competition, kind, cell string) {
	all := c.of([]string{kind})
	median, p99, longest := tail(all)
	figures.add(place, competition, kind, cell, len(all), median, p99, longest)
}

// tail returns the median, the 99th percentile and the maximum of durations, which are sorted.
func tail(sorted []time.Duration) (median, p99, longest string) {
	if len(sorted) == 0 {
		return "-", "-", "-"
	}
	show := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	last := len(sorted) - 1
	return show(sorted[last/2]), show(sorted[last*99/100]), show(sorted[last])
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
