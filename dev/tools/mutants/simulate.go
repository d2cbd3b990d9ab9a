package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A verdict is what the simulation says of a mutant.
type verdict struct {
	kind   string // of the violation; "" if the mutant survived
	seed   string // of the world of the violation
	worlds int    // how many there were
	took   time.Duration
	cpu    time.Duration // the processor time of it
	fault  string        // why it counts for nothing, or ""
	output string        // of the simulation, or of the compiler
}

const simulationPackage = "internal/test/simulation"

// compile compiles the simulation in the module in dir. problem is what the compiler says.
func compile(ctx context.Context, dir, binary string) (problem string, err error) {
	// Without paths in it, what was compiled in another copy is used again.
	build := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-o", binary, "./"+simulationPackage)
	build.Dir = dir
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Sprintf("%v\n%s", err, output), ctx.Err()
	}
	return "", nil
}

// simulate runs a compiled simulation from seed 1 on until its first violation, or until there were
// enough worlds. If seed is not "", it runs the world of that seed alone. So its verdict depends
// neither on chance nor on the machine.
func simulate(ctx context.Context, dir, binary string, worlds int, seed string) (verdict, error) {
	run := exec.CommandContext(ctx, binary, "-test.run=^TestSimulation$", "-test.v", "-test.timeout=0")
	run.Dir = filepath.Join(dir, filepath.FromSlash(simulationPackage))
	run.Env = append(os.Environ(), "SQLLOCK_SIMULATION_FROM=1", "SQLLOCK_SIMULATION_WORLDS="+strconv.Itoa(worlds),
		"SQLLOCK_SIMULATION_FIRST=1", "SQLLOCK_SIMULATION_SEED="+seed)
	var output bytes.Buffer
	run.Stdout, run.Stderr = &output, &output
	began := time.Now()
	err := run.Run()
	v := verdict{took: time.Since(began), output: output.String()}
	if run.ProcessState != nil {
		v.cpu = run.ProcessState.UserTime() + run.ProcessState.SystemTime()
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) || ctx.Err() != nil {
		return v, errors.Join(err, ctx.Err())
	}
	v.read(err == nil)
	return v, nil
}

var (
	violationForm = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: ([a-z -]+): .*\n(?:.*\n)*?\s+Repeat it with: make simulate SEED=(\d+)`)
	worldsForm    = regexp.MustCompile(`(?m)^simulation: seeds .* (\d+) worlds`)
	repeatedForm  = regexp.MustCompile(`(?m)^simulation: seed \d+`)
)

// read finds the first violation in the output of the simulation.
func (v *verdict) read(passed bool) {
	if found := worldsForm.FindStringSubmatch(v.output); found != nil {
		v.worlds, _ = strconv.Atoi(found[1]) // digits
	} else if repeatedForm.MatchString(v.output) {
		v.worlds = 1
	}
	found := violationForm.FindStringSubmatch(v.output)
	switch {
	case found != nil:
		v.kind, v.seed = found[1], found[2]
	case !passed:
		v.fault = "the simulation failed, and named no violation"
	case v.worlds == 0:
		v.fault = "the simulation did not run"
	}
}

// copyModule copies the files of the module in dir that git knows or would add.
func copyModule(ctx context.Context, dir, to string) error {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = dir
	names, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", dir, err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // a file of the module
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return err
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
