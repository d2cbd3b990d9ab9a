package simulation_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/test/simulation"
	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
)

// childVariable has the task of a child process, as JSON. A child runs worlds one after the
// other.
const childVariable = "SQLLOCK_SIMULATION_CHILD"

// childSettings are for things to happen in the same order again: one processor, no garbage
// collection while a world runs, and as few interruptions of a goroutine as can be.
var childSettings = []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=1GiB", "GODEBUG=asyncpreemptoff=1"}

// A task is what a child does.
type task struct {
	First, Step uint64
	Worlds      int           // at most; 0 means no limit
	For         time.Duration // no world is begun after that; 0 means no limit
	Changes     string
	Events      int    // of the history of a violation
	Dir         string // the parent's, for files: it removes it even if the child is killed
}

// A report is what a child prints about a world.
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
		printReport(t, report{Seed: seed, Began: true})
		done := runWorld(t, todo, seed)
		r := report{
			Seed: seed, Changes: todo.Changes, Violation: done.Violation, Virtual: done.Virtual, Acquisitions: done.Acquisitions,
			Faults: done.Faults, Sum: done.Sum,
		}
		if done.Violation != nil || todo.Worlds == 1 {
			var history strings.Builder
			done.Print(&history, todo.Events)
			r.History = history.String()
		}
		printReport(t, r)
		if done.Violation != nil {
			return
		}
	}
}

func printReport(t *testing.T, r report) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(reportMark + string(text))
}

// runWorld runs one world in a bubble.
func runWorld(t *testing.T, todo task, seed uint64) (result simulation.Result) {
	t.Helper()
	plan := simulation.NewPlan(seed)
	if err := plan.Apply(todo.Changes); err != nil {
		t.Fatal(err)
	}
	template := virtualsqlite.Template(t, plan.Layout)
	dir, err := os.MkdirTemp(todo.Dir, "world-") //nolint:usetesting // the parent chooses where
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	defer runtime.GC() // see childSettings
	synctest.Test(t, func(t *testing.T) {
		var err error
		if result, err = simulation.Run(plan, dir, template); err != nil {
			t.Fatal(err)
		}
	})
	return result
}

// ramDir returns a new directory, in memory if possible.
func ramDir() (string, error) {
	const pattern = "sqllock-simulation-"
	dir, err := os.MkdirTemp("/dev/shm", pattern)
	if err != nil {
		return os.MkdirTemp("", pattern)
	}
	return dir, nil
}

// hangsAfter is when a child that prints nothing is taken to hang. A world takes seconds.
const hangsAfter = 20 * time.Minute

var errHangs = errors.New("the child hangs")

// A harvest is what a child has done.
type harvest struct {
	reports []report // of the worlds that it has finished
	cpu     time.Duration
}

// runChild runs a task in a child process. A child that dies in a world reports a violation of
// the kind "panic" or "hang".
func runChild(ctx context.Context, todo task) (done harvest, err error) {
	if todo.Dir, err = ramDir(); err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(todo.Dir)) }()
	text, err := json.Marshal(todo)
	if err != nil {
		return done, err
	}
	ctx, hang := context.WithCancelCause(ctx)
	defer hang(nil)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChild$", "-test.v", "-test.timeout=0") //nolint:gosec // this program
	cmd.Env = append(append(os.Environ(), childSettings...), childVariable+"="+string(text))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return done, err
	}
	if err := cmd.Start(); err != nil {
		return done, err
	}
	hangs := time.AfterFunc(hangsAfter, func() { hang(errHangs) })
	defer hangs.Stop()
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<26)
	reports, current, output := readReports(lines, func() { hangs.Reset(hangsAfter) })
	err = errors.Join(lines.Err(), cmd.Wait())
	done = harvest{reports, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	isHung := errors.Is(context.Cause(ctx), errHangs)
	if err != nil && (ctx.Err() == nil || isHung) {
		kind := "panic"
		if isHung {
			kind = "hang"
		}
		done.reports = append(done.reports, report{
			Seed: current, Changes: todo.Changes, Violation: &simulation.Violation{Kind: kind, Text: err.Error()},
			History: output + stderr.String(),
		})
	}
	return done, nil
}

// readReports reads what a child prints: its reports, and the rest. current is the seed of the
// last world that has begun. each is called for each line.
func readReports(lines *bufio.Scanner, each func()) (reports []report, current uint64, rest string) {
	var output strings.Builder
	for lines.Scan() {
		each()
		line, isReport := strings.CutPrefix(lines.Text(), reportMark)
		var r report
		if !isReport || json.Unmarshal([]byte(line), &r) != nil {
			fmt.Fprintln(&output, lines.Text())
			continue
		}
		if current = r.Seed; !r.Began {
			reports = append(reports, r)
		}
	}
	return reports, current, output.String()
}
