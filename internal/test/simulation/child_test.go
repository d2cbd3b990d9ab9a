package simulation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/simulation"
	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
)

// childVariable has the task of a child process, as JSON. Each world has a process of its own: the
// order of some maps depends on addresses, and so on what the process has done before.
const childVariable = "SQLLOCK_SIMULATION_CHILD"

// childSettings are all that a child has in its environment. They are for things to happen in the
// same order again: one processor, and no garbage collection.
var childSettings = []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1"}

// A task is the world that a child runs.
type task struct {
	Seed    uint64
	Changes string
	Events  int // of the history in its report
}

// A report is what a child prints about its world.
type report struct {
	task

	Violation    *simulation.Violation
	Virtual      time.Duration
	Acquisitions int
	Faults       int
	Sum          uint64 // of the history
	History      string // the last events
}

func (r *report) explain() string {
	return fmt.Sprintf("%s: %s\nRepeat it with: make simulate SEED=%d CHANGES='%s'\n%s",
		r.Violation.Kind, r.Violation.Text, r.Seed, r.Changes, r.History)
}

// reportMark begins the line with the report.
const reportMark = "world: "

// templateName is the file from which the child makes its database.
const templateName = "template.db"

// TestChild is the main function of a child. It runs one world in a bubble.
func TestChild(t *testing.T) {
	text := os.Getenv(childVariable)
	if text == "" {
		t.Skip("for child processes of the other tests")
	}
	var r report
	check.Must(t, json.Unmarshal([]byte(text), &r.task))
	plan := simulation.NewPlan(r.Seed)
	check.Must(t, plan.Apply(r.Changes))
	template := check.Value(os.ReadFile(templateName))(t)
	var done simulation.Result
	synctest.Test(t, func(t *testing.T) {
		var err error
		if done, err = simulation.Run(plan, ".", template); err != nil {
			t.Fatal(err)
		}
	})
	r.Violation, r.Virtual, r.Acquisitions, r.Faults, r.Sum = done.Violation, done.Virtual, done.Acquisitions, done.Faults, done.Sum
	var history strings.Builder
	done.Print(&history, r.Events)
	r.History = history.String()
	line := check.Value(json.Marshal(r))(t)
	fmt.Println(reportMark + string(line))
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

// hangsAfter is when a child is taken to hang. A world takes seconds.
const hangsAfter = 20 * time.Minute

var errHangs = errors.New("the child hangs")

// runChild runs a world in a child process, and returns its processor time, too. A child that dies
// reports a violation of the kind "panic" or "hang".
func runChild(ctx context.Context, t *testing.T, todo task) (r report, cpu time.Duration, err error) {
	t.Helper()
	dir, err := ramDir()
	if err != nil {
		return r, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	plan := simulation.NewPlan(todo.Seed)
	if err := os.WriteFile(filepath.Join(dir, templateName), virtualsqlite.Template(t, plan.Layout), 0o600); err != nil {
		return r, 0, err
	}
	program, err := os.Executable()
	if err != nil {
		return r, 0, err
	}
	text, err := json.Marshal(todo)
	if err != nil {
		return r, 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, hangsAfter, errHangs)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.run=^TestChild$", "-test.timeout=0") //nolint:gosec // this program
	cmd.Dir = dir                                                                        // so the names of files have the same length each time
	cmd.Env = append(childSettings[:len(childSettings):len(childSettings)], childVariable+"="+string(text))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	ended := cmd.Run()
	if cmd.ProcessState != nil {
		cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	_, line, hasReport := strings.Cut(output.String(), reportMark)
	switch line, _, _ = strings.Cut(line, "\n"); {
	case errors.Is(context.Cause(ctx), errHangs):
		r = report{task: todo, Violation: &simulation.Violation{Kind: "hang", Text: errHangs.Error()}, History: output.String()}
	case ctx.Err() != nil:
		return r, cpu, ctx.Err()
	case ended != nil || !hasReport:
		r = report{task: todo, Violation: &simulation.Violation{Kind: "panic", Text: fmt.Sprint(ended)}, History: output.String()}
	default:
		err = json.Unmarshal([]byte(line), &r)
	}
	return r, cpu, err
}

// hasOverlay reports whether this program is compiled with package overlay's changes to Go's
// runtime: then all bubbles have the same random numbers.
func hasOverlay(t *testing.T) bool {
	t.Helper()
	var drawn [2]uint64
	for i := range drawn {
		synctest.Test(t, func(*testing.T) { drawn[i] = rand.Uint64() }) //nolint:gosec // no secret
	}
	return drawn[0] == drawn[1]
}
