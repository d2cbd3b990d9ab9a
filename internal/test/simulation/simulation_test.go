package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/simulation"
)

// The variables that choose what TestSimulation does.
const (
	forVariable     = "SQLLOCK_SIMULATE" // for how long
	seedVariable    = "SQLLOCK_SIMULATION_SEED"
	changesVariable = "SQLLOCK_SIMULATION_CHANGES"
	historyVariable = "SQLLOCK_SIMULATION_HISTORY" // if set, the whole history is printed
	fromVariable    = "SQLLOCK_SIMULATION_FROM"    // the first seed, in place of a random one
	worldsVariable  = "SQLLOCK_SIMULATION_WORLDS"  // for how many worlds, in place of a time
	firstVariable   = "SQLLOCK_SIMULATION_FIRST"   // if set, the first violation ends it
)

// A sum adds up what children report.
type sum struct {
	mu           sync.Mutex
	worlds       int
	virtual      time.Duration
	acquisitions int
	faults       int
	cpu          time.Duration
	failed       []report
	err          error
}

// add adds what a child has done. It reports whether something has failed so far.
func (s *sum) add(done harvest, err error) (failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cpu += done.cpu
	s.err = errors.Join(s.err, err)
	for _, r := range done.reports {
		s.worlds++
		s.virtual += r.Virtual
		s.acquisitions += r.Acquisitions
		s.faults += r.Faults
		if r.Violation != nil {
			s.failed = append(s.failed, r)
			fmt.Printf("simulation: seed %d: %s: %s (more when all have ended)\n", r.Seed, r.Violation.Kind, r.Violation.Text)
		}
	}
	return len(s.failed) > 0 || s.err != nil
}

// print prints the sum. The figures of a minute are those of two processors that have nothing
// else to do.
func (s *sum) print(first uint64, took time.Duration) {
	minutes := s.cpu.Minutes() / 2
	fmt.Printf("simulation: seeds %d to %d, %d worlds, %v of virtual time, %d acquisitions, %d faults in %v, %v of processor time"+
		" (%.1f virtual hours and %.0f acquisitions a minute), %d violations\n",
		first, first+uint64(s.worlds), s.worlds, s.virtual.Round(time.Second), s.acquisitions, s.faults, took.Round(time.Second),
		s.cpu.Round(time.Second), s.virtual.Hours()/minutes, float64(s.acquisitions)/minutes, len(s.failed))
}

// TestSimulation runs worlds in as many processes as there are processors, for a few seconds, or
// as long as SQLLOCK_SIMULATE says.
func TestSimulation(t *testing.T) {
	if seed := os.Getenv(seedVariable); seed != "" {
		repeat(t, seed)
		return
	}
	first, children := firstSeed(t), uint64(runtime.GOMAXPROCS(0))
	todo := firstTask(t, children)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	firstOnly := os.Getenv(firstVariable) != ""
	began := time.Now()
	var all sum
	var running sync.WaitGroup
	for i := range children {
		running.Go(func() {
			mine := todo
			mine.First = first + i
			done, err := runChild(ctx, mine)
			if all.add(done, err) && firstOnly {
				cancel()
			}
		})
	}
	running.Wait()
	all.print(first, time.Since(began))
	if all.err != nil {
		t.Error(all.err)
	}
	for _, failed := range all.failed {
		t.Error(failed.explain())
	}
	if len(all.failed) > 0 && !firstOnly {
		shrink(t, all.failed[0])
	}
}

// firstTask returns what each of some children does, but for the seed.
func firstTask(t *testing.T, children uint64) task {
	t.Helper()
	todo := task{Step: children, Events: 80}
	if text := os.Getenv(worldsVariable); text != "" {
		worlds, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			t.Fatal(err)
		}
		todo.Worlds = int((worlds + children - 1) / children)
		return todo
	}
	if text := os.Getenv(forVariable); text != "" {
		var err error
		if todo.For, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		return todo
	}
	// A quick run has short worlds: with the race detector, a long one takes half a minute.
	todo.Changes, todo.For = "duration=40s", 2*time.Second
	if testing.Short() {
		todo.For = time.Second
	}
	return todo
}

// firstSeed returns the first seed: a random one in a long run, unless another is wanted. go test
// and make test have the same ones each time, since a red test should be about a change.
func firstSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(fromVariable)
	switch {
	case text == "" && os.Getenv(forVariable) == "":
		return 1
	case text == "":
		return uint64(rand.Uint32())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

func (r report) explain() string {
	return fmt.Sprintf("%s: %s\nRepeat it with: make simulate SEED=%d CHANGES='%s'\n%s",
		r.Violation.Kind, r.Violation.Text, r.Seed, r.Changes, r.History)
}

// repeat runs the world of one seed again.
func repeat(t *testing.T, text string) {
	t.Helper()
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	todo := task{First: seed, Worlds: 1, Changes: os.Getenv(changesVariable), Events: 80}
	if os.Getenv(historyVariable) != "" {
		todo.Events = 1 << 30
	}
	for range timesToRepeat {
		if repeatOnce(t, todo) {
			return
		}
	}
}

// timesToRepeat is how often a world is run until it fails: see TestASeedRepeatsItself.
const timesToRepeat = 3

// repeatOnce runs a world. It reports whether it has broken a promise.
func repeatOnce(t *testing.T, todo task) (failed bool) {
	t.Helper()
	done, err := runChild(t.Context(), todo)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range done.reports {
		fmt.Printf("simulation: seed %d: %v of virtual time, %d acquisitions, history %x\n", r.Seed, r.Virtual, r.Acquisitions, r.Sum)
		if r.Violation != nil {
			t.Error(r.explain())
			return true
		}
		if os.Getenv(historyVariable) != "" {
			fmt.Print(r.History)
			return true
		}
	}
	return false
}

// shrinkFor is how long a failure is made simpler.
const shrinkFor = time.Minute

// shrink looks for the simplest world that breaks the same promise, and prints it.
func shrink(t *testing.T, failed report) {
	t.Helper()
	plan := simulation.NewPlan(failed.Seed)
	if err := plan.Apply(failed.Changes); err != nil {
		t.Fatal(err)
	}
	changes, smallest := failed.Changes, failed
	began := time.Now()
	for again := true; again && time.Since(began) < shrinkFor; {
		again = false
		for _, change := range plan.Reductions(smallest.Violation.At) {
			if time.Since(began) > shrinkFor {
				break
			}
			if r, with := tryChange(t, failed, changes, change); r != nil {
				changes, smallest, again = with, *r, true
				plan = simulation.NewPlan(failed.Seed)
				if err := plan.Apply(changes); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
	}
	t.Logf("The simplest world that was found: make simulate SEED=%d CHANGES='%s'\n%s", failed.Seed, changes, smallest.History)
}

// tryChange runs the world of a failure with one more change, with three kinds of random
// numbers. It returns the report and the changes if it fails in the same way.
func tryChange(t *testing.T, failed report, changes, change string) (*report, string) {
	t.Helper()
	for salt := range 3 {
		with := strings.TrimSpace(fmt.Sprintf("%s %s", changes, change))
		if salt > 0 {
			with += fmt.Sprintf(" salt=%d", salt)
		}
		done, err := runChild(t.Context(), task{First: failed.Seed, Worlds: 1, Changes: with, Events: 80})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range done.reports {
			if r.Violation != nil && r.Violation.Kind == failed.Violation.Kind {
				return &r, with
			}
		}
	}
	return nil, ""
}

// TestASeedRepeatsItself runs worlds until most of them had the same history twice, which
// almost always are the first two runs of all. Where two goroutines are ready in one instant, their
// order depends on Go's scheduler and on what interrupts it: a busy machine, random choices of
// select, and the order of a map. What follows can differ then.
func TestASeedRepeatsItself(t *testing.T) {
	if simulation.RaceDetector {
		t.Skip("the race detector shuffles what runs next; make simulate runs this test without it")
	}
	const worlds, runs, most = 6, 4, 4
	seen := make([]map[uint64]int, worlds)
	for range runs {
		repeated := 0
		done, err := runChild(t.Context(), task{First: 1000, Step: 1, Worlds: worlds, Changes: "duration=2m"})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range done.reports {
			if seen[i] == nil {
				seen[i] = make(map[uint64]int)
			}
			if seen[i][r.Sum]++; slices.Max(slices.Collect(maps.Values(seen[i]))) > 1 {
				repeated++
			}
		}
		if repeated >= most {
			t.Logf("%d of %d worlds have repeated themselves", repeated, worlds)
			return
		}
	}
	t.Errorf("the histories of %d worlds in %d runs: %v", worlds, runs, seen)
}

// TestAFailoverThatForgetsCommitsIsCaught is the control group: a database that loses
// acknowledged writes cannot hold a safe lock, and the simulation must find that out.
func TestAFailoverThatForgetsCommitsIsCaught(t *testing.T) {
	const worlds = 40
	for seed := range uint64(worlds) { // a child ends with its first violation
		done, err := runChild(t.Context(), task{First: seed, Worlds: 1, Changes: "duration=3m +failover"})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range done.reports {
			if r.Violation == nil {
				continue
			}
			switch r.Violation.Kind {
			case "two holders", "taken", "stolen", "no row", "token", "late write", "outlives":
				t.Logf("seed %d: %s: %s", r.Seed, r.Violation.Kind, r.Violation.Text)
				return
			}
		}
	}
	t.Errorf("%d worlds, and no violation of a promise about holders", worlds)
}
