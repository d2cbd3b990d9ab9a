package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/simulation"
)

// The variables that choose what TestSimulation does. An empty one is as if it were not set.
const (
	forVariable     = "SQLLOCK_SIMULATE"           // for how long
	worldsVariable  = "SQLLOCK_SIMULATION_WORLDS"  // for how many worlds, in place of a time
	twiceVariable   = "SQLLOCK_SIMULATION_TWICE"   // how many of them are run twice, and must have the same history
	fromVariable    = "SQLLOCK_SIMULATION_FROM"    // the first seed, in place of 1 or, for a time, a random one
	seedVariable    = "SQLLOCK_SIMULATION_SEED"    // these seeds alone: 86,443
	changesVariable = "SQLLOCK_SIMULATION_CHANGES" // of these worlds: see simulation.Plan.Apply
	historyVariable = "SQLLOCK_SIMULATION_HISTORY" // if set, the whole history of these is printed
	firstVariable   = "SQLLOCK_SIMULATION_FIRST"   // if set, the first violation ends it
)

// TestSimulation runs worlds, as many at once as there are processors. Without variables these are
// a few short ones: with the race detector, a long one takes half a minute.
func TestSimulation(t *testing.T) {
	s := newSweep(t)
	s.run(t)
	if len(s.failed) > 0 && s.seeds == nil && !s.firstOnly {
		shrink(t, s.failed[0])
	}
}

func newSweep(t *testing.T) *sweep {
	t.Helper()
	s := &sweep{
		events: 80, changes: os.Getenv(changesVariable), firstOnly: os.Getenv(firstVariable) != "",
		first: number(t, fromVariable), twice: number(t, twiceVariable), worlds: number(t, worldsVariable),
	}
	for text := range strings.FieldsFuncSeq(os.Getenv(seedVariable), func(r rune) bool { return r == ',' || r == ' ' }) {
		s.seeds = append(s.seeds, check.Value(strconv.ParseUint(text, 10, 64))(t))
	}
	if os.Getenv(historyVariable) != "" && s.seeds != nil {
		s.events = 1 << 30
	}
	if (s.seeds != nil || s.twice > 0) && !hasOverlay(t) {
		fmt.Println("simulation: a seed may have another history each time; make simulate compiles the simulation so that it has one")
	}
	text := os.Getenv(forVariable)
	switch {
	case s.seeds != nil:
		s.worlds = uint64(len(s.seeds))
	case s.worlds > 0:
	case text != "":
		d := check.Value(time.ParseDuration(text))(t)
		s.until = time.Now().Add(d)
		if s.first == 0 {
			s.first = uint64(rand.Uint32()) //nolint:gosec // no secret
		}
	default:
		s.changes, s.worlds = "duration=40s", 6
		if testing.Short() {
			s.worlds = 2
		}
	}
	s.first = max(s.first, 1)
	return s
}

// number returns the number in a variable, or 0.
func number(t *testing.T, variable string) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// shrinkFor is how long a failure is made simpler.
const shrinkFor = time.Minute

// shrink looks for the simplest world that breaks the same promise, and prints it.
func shrink(t *testing.T, failed report) {
	t.Helper()
	smallest := failed
	began := time.Now()
	for again := true; again && time.Since(began) < shrinkFor; {
		again = false
		plan := simulation.NewPlan(failed.Seed)
		check.Must(t, plan.Apply(smallest.Changes))
		for _, change := range plan.Reductions(smallest.Violation.At) {
			if time.Since(began) > shrinkFor {
				break
			}
			if r, ok := tryChange(t, smallest, change); ok {
				smallest, again = r, true
				break
			}
		}
	}
	t.Logf("The simplest world that was found: make simulate SEED=%d CHANGES='%s'\n%s", failed.Seed, smallest.Changes, smallest.History)
}

// tryChange runs the world of a failure with one more change, with three kinds of random
// numbers. It returns the report, and whether it fails in the same way.
func tryChange(t *testing.T, failed report, change string) (r report, ok bool) {
	t.Helper()
	for salt := range 3 {
		todo := failed.task
		todo.Changes = strings.TrimSpace(fmt.Sprintf("%s %s", todo.Changes, change))
		if salt > 0 {
			todo.Changes += fmt.Sprintf(" salt=%d", salt)
		}
		r, _, err := runChild(t.Context(), t, todo)
		check.Must(t, err)
		if r.Violation != nil && r.Violation.Kind == failed.Violation.Kind {
			return r, true
		}
	}
	return r, false
}

// TestAFailoverThatForgetsCommitsIsCaught is the control group: a database that loses
// acknowledged writes cannot hold a safe lock, and the simulation must find that out.
func TestAFailoverThatForgetsCommitsIsCaught(t *testing.T) {
	check.Long(t)
	const worlds = 40
	for seed := range uint64(worlds) {
		r, _, err := runChild(t.Context(), t, task{Seed: seed, Changes: "duration=30s +failover"})
		check.Must(t, err)
		if r.Violation == nil {
			continue
		}
		switch r.Violation.Kind {
		case "two holders", "taken", "stolen", "no row", "token", "late write", "outlives":
			t.Logf("seed %d: %s: %s", r.Seed, r.Violation.Kind, r.Violation.Text)
			return
		}
	}
	t.Errorf("%d worlds, and no violation of a promise about holders", worlds)
}
