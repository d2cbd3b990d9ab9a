package simulation_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/test/simulation"
	"github.com/sqllock/sqllock/internal/test/virtual"
)

// The variables of a child process, which runs worlds one after the other. It has one
// processor, so that things happen in the same order again.
const (
	childVariable   = "SQLLOCK_SIMULATION_CHILD" // its task, as JSON
	forVariable     = "SQLLOCK_SIMULATE"         // for how long TestSimulation runs
	seedVariable    = "SQLLOCK_SIMULATION_SEED"
	changesVariable = "SQLLOCK_SIMULATION_CHANGES"
	historyVariable = "SQLLOCK_SIMULATION_HISTORY" // if set, the whole history is printed
	fromVariable    = "SQLLOCK_SIMULATION_FROM"    // the first seed, in place of a random one
	firstVariable   = "SQLLOCK_SIMULATION_FIRST"   // if set, the first violation ends TestSimulation
)

// A task is what a child does.
type task struct {
	First, Step uint64
	Worlds      int           // at most; 0 means no limit
	For         time.Duration // no world is begun after that; 0 means no limit
	Changes     string
	Events      int // of the history of a violation
}

// A report is what a child tells of a world.
type report struct {
	Seed         uint64
	Changes      string
	Began        bool // only that it has begun
	Violation    *simulation.Violation
	Virtual      time.Duration
	Acquisitions int
	Faults       int
	Sum          uint64
	History      string
}

// reportMark begins a line with a report.
const reportMark = "world: "

// TestChild is the main function of a child.
func TestChild(t *testing.T) {
	text := os.Getenv(childVariable)
	if text == "" {
		t.Skip("for child processes of the other tests")
	}
	var todo task
	if err := json.Unmarshal([]byte(text), &todo); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for n := 0; (todo.Worlds == 0 || n < todo.Worlds) && (todo.For == 0 || time.Since(began) < todo.For); n++ {
		seed := todo.First + uint64(n)*todo.Step
		tell(t, report{Seed: seed, Began: true})
		done := runWorld(t, seed, todo.Changes)
		told := report{
			Seed: seed, Changes: todo.Changes, Violation: done.Violation, Virtual: done.Virtual, Acquisitions: done.Acquisitions,
			Faults: done.Faults, Sum: done.Sum,
		}
		if done.Violation != nil || todo.Worlds == 1 {
			var history strings.Builder
			done.Print(&history, todo.Events)
			told.History = history.String()
		}
		tell(t, told)
		if done.Violation != nil {
			return
		}
	}
}

func tell(t *testing.T, r report) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(reportMark + string(text))
}

// runWorld runs one world in a bubble.
func runWorld(t *testing.T, seed uint64, changes string) (result simulation.Result) {
	t.Helper()
	plan := simulation.NewPlan(seed)
	if err := plan.Apply(changes); err != nil {
		t.Fatal(err)
	}
	template, dir := virtual.Template(t, plan.Layout), ramDir(t)
	defer func() { _ = os.RemoveAll(dir) }()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if result, err = simulation.Run(plan, dir, template); err != nil {
			t.Fatal(err)
		}
	})
	return result
}

// ramDir returns a new directory, in memory if possible.
func ramDir(t *testing.T) string {
	t.Helper()
	const pattern = "sqllock-simulation-"
	dir, err := os.MkdirTemp("/dev/shm", pattern) //nolint:usetesting // in memory
	if err != nil {
		dir, err = os.MkdirTemp("", pattern) //nolint:usetesting // the same
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// hangsAfter is when a child that says nothing is taken to hang. A world takes seconds.
const hangsAfter = 20 * time.Minute

var errHangs = errors.New("the child hangs")

// runChild runs a task in a child process, and returns the reports of the worlds that it has
// finished. A child that dies in a world reports a violation of the kind "panic" or "hang".
func runChild(ctx context.Context, t *testing.T, todo task) (reports []report) {
	t.Helper()
	text, err := json.Marshal(todo)
	if err != nil {
		t.Fatal(err)
	}
	ctx, hang := context.WithCancelCause(ctx)
	defer hang(nil)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChild$", "-test.v", "-test.timeout=0") //nolint:gosec // this program
	cmd.Env = append(os.Environ(), childVariable+"="+string(text), "GOMAXPROCS=1", "GOGC=400")
	var output, stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hangs := time.AfterFunc(hangsAfter, func() { hang(errHangs) })
	defer hangs.Stop()
	var current uint64
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		hangs.Reset(hangsAfter)
		line, isReport := strings.CutPrefix(lines.Text(), reportMark)
		if !isReport {
			fmt.Fprintln(&output, lines.Text())
			continue
		}
		var r report
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if current = r.Seed; !r.Began {
			reports = append(reports, r)
		}
	}
	if err := cmd.Wait(); err != nil && (ctx.Err() == nil || errors.Is(context.Cause(ctx), errHangs)) {
		kind := "panic"
		if ctx.Err() != nil {
			kind = "hang"
		}
		reports = append(reports, report{Seed: current, Changes: todo.Changes, Violation: &simulation.Violation{Kind: kind, Text: err.Error()}, History: output.String() + stderr.String()})
	}
	return reports
}

// A sum adds up what children report.
type sum struct {
	mu           sync.Mutex
	worlds       int
	virtual      time.Duration
	acquisitions int
	faults       int
	failed       []report
}

// add adds reports. It returns whether there was a violation so far.
func (s *sum) add(reports []report) (failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range reports {
		s.worlds++
		s.virtual += r.Virtual
		s.acquisitions += r.Acquisitions
		s.faults += r.Faults
		if r.Violation != nil {
			s.failed = append(s.failed, r)
		}
	}
	return len(s.failed) > 0
}

// TestSimulation runs worlds of random seeds in as many processes as there are processors,
// for a few seconds, or as long as SQLLOCK_SIMULATE says.
func TestSimulation(t *testing.T) {
	if seed := os.Getenv(seedVariable); seed != "" {
		repeat(t, seed)
		return
	}
	// A quick run has short worlds: with the race detector, a long one takes half a minute.
	lasts, changes := 2*time.Second, "duration=40s"
	if testing.Short() {
		lasts = time.Second
	}
	if text := os.Getenv(forVariable); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		changes = ""
	}
	first, children := firstSeed(t), uint64(runtime.NumCPU())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	firstOnly := os.Getenv(firstVariable) != ""
	began := time.Now()
	var all sum
	var running sync.WaitGroup
	for i := range children {
		running.Go(func() {
			reports := runChild(ctx, t, task{First: first + i, Step: children, For: lasts, Changes: changes, Events: 80})
			if all.add(reports) && firstOnly {
				cancel()
			}
		})
	}
	running.Wait()
	took := time.Since(began)
	fmt.Printf("simulation: seeds %d to %d, %d worlds, %v of virtual time, %d acquisitions, %d faults in %v (%.1f virtual hours and %.0f acquisitions a minute), %d violations\n",
		first, first+uint64(all.worlds), all.worlds, all.virtual.Round(time.Second), all.acquisitions, all.faults, took.Round(time.Second),
		all.virtual.Hours()/took.Minutes(), float64(all.acquisitions)/took.Minutes(), len(all.failed))
	for _, failed := range all.failed {
		t.Error(failed.explain())
	}
	if len(all.failed) > 0 && !firstOnly {
		shrink(t, all.failed[0])
	}
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
	return fmt.Sprintf("%s: %s\nRepeat it with: make simulate SEED=%d CHANGES='%s'\n%s", r.Violation.Kind, r.Violation.Text, r.Seed, r.Changes, r.History)
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

// timesToRepeat is how often a world is run again until it fails: see TestASeedRepeatsItself.
const timesToRepeat = 3

// repeatOnce runs a world. It returns whether it has broken a promise.
func repeatOnce(t *testing.T, todo task) (failed bool) {
	t.Helper()
	for _, r := range runChild(t.Context(), t, todo) {
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
		for _, r := range runChild(t.Context(), t, task{First: failed.Seed, Worlds: 1, Changes: with, Events: 80}) {
			if r.Violation != nil && r.Violation.Kind == failed.Violation.Kind {
				return &r, with
			}
		}
	}
	return nil, ""
}

// TestASeedRepeatsItself runs worlds until most of them had the same history twice, which
// almost always are the first two runs of all. On a busy machine the scheduler may swap two
// goroutines that run in one instant; what follows can differ then.
func TestASeedRepeatsItself(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector shuffles what runs next; make simulate runs this test without it")
	}
	const worlds, runs, most = 6, 4, 4
	seen := make([]map[uint64]int, worlds)
	for range runs {
		repeated := 0
		for i, r := range runChild(t.Context(), t, task{First: 1000, Step: 1, Worlds: worlds, Changes: "duration=2m"}) {
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
		for _, r := range runChild(t.Context(), t, task{First: seed, Worlds: 1, Changes: "duration=3m +failover"}) {
			if r.Violation == nil {
				continue
			}
			switch r.Violation.Kind {
			case "two holders", "taken", "token", "late write", "outlives":
				t.Logf("seed %d: %s: %s", r.Seed, r.Violation.Kind, r.Violation.Text)
				return
			}
		}
	}
	t.Errorf("%d worlds, and no violation of a promise about holders", worlds)
}
