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
)

// A verdict is what a simulation says of a mutant.
type verdict struct {
	kind   string // of the violation; "" if the mutant survived
	seed   int    // of its world
	output string // of the simulation, or of the compiler
}

// A simulation is a test that runs worlds.
type simulation struct {
	name, pkg   string
	first, last int // seeds
}

var (
	worlds    = simulation{"world", "internal/test/simulation", 1, 1 << 30}
	elections = simulation{"election", "sync/leader", 0, 9}
	// The worlds have no wake-ups of MySQL. Bells are the tests of their package, in virtual time, which have no seed: all of
	// them are the first.
	bells = simulation{"run", "internal/bell", 1, 1}

	simulations = []*simulation{&worlds, &elections, &bells}
)

// compile compiles a simulation in the module in dir. problem is what the compiler says.
func (s *simulation) compile(ctx context.Context, dir, overlay, binary string) (problem string) {
	// Without paths in it, what was compiled in another copy is used again.
	build := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-overlay="+overlay, "-o", binary, "./"+s.pkg)
	build.Dir = dir
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Sprintf("%v\n%s", err, output)
	}
	return ""
}

// makeOverlay writes the changes to Go's runtime with which a seed has one history.
func makeOverlay(ctx context.Context, dir string) (path string, err error) {
	write := exec.CommandContext(ctx, "go", "run", "./internal/test/simulation/overlay", "bin/overlay")
	write.Dir, write.Stderr = dir, os.Stderr
	output, err := write.Output()
	return strings.TrimSpace(string(output)), err
}

// run runs worlds until the first violation.
func (s *simulation) run(ctx context.Context, binary string, seeds []int) (v verdict, err error) {
	if s == &worlds {
		output, passed, err := s.execute(ctx, binary, "^TestSimulation$", "SQLLOCK_SIMULATION_FIRST=1", "SQLLOCK_SIMULATION_SEED="+joined(seeds, ","))
		if err != nil {
			return v, err
		}
		return verdictOf(output, passed)
	}
	if s == &bells {
		output, passed, err := s.execute(ctx, binary, ".")
		if err != nil {
			return v, err
		}
		return failedTest(output, passed)
	}
	for _, seed := range seeds { // each in a process of its own, as the others
		output, passed, err := s.execute(ctx, binary, fmt.Sprintf("^TestElections$/^%d$", seed), "SQLLOCK_SIMULATE=all", "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
		v = verdict{seed: seed, output: output}
		switch {
		case err != nil:
			return v, err
		case strings.Contains(output, " leads with token "):
			v.kind = "two leaders"
			return v, nil
		case !passed:
			v.kind = "no leader"
			return v, nil
		}
	}
	return v, nil
}

// execute runs a test in its package. It returns its output, and whether it has passed.
func (s *simulation) execute(ctx context.Context, binary, test string, environment ...string) (output string, passed bool, err error) {
	run := exec.CommandContext(ctx, binary, "-test.run="+test, "-test.v", "-test.timeout=0")
	run.Dir = filepath.Join(filepath.Dir(binary), filepath.FromSlash(s.pkg))
	run.Env = append(os.Environ(), environment...)
	var text bytes.Buffer
	run.Stdout, run.Stderr = &text, &text
	err = run.Run()
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || failed.ExitCode() < 0) || ctx.Err() != nil {
		return "", false, errors.Join(err, ctx.Err()) // it was not run, or was killed
	}
	return text.String(), err == nil, nil
}

var failedFirst = regexp.MustCompile(`(?m)^--- FAIL: (\w+) `)

// failedTest finds the first test that has failed.
func failedTest(output string, passed bool) (v verdict, err error) {
	v.output = output
	switch found := failedFirst.FindStringSubmatch(output); {
	case found != nil:
		v.kind, v.seed = found[1], 1
	case !passed:
		err = fmt.Errorf("the tests failed, and named none:\n%s", output)
	case !strings.Contains(output, "--- PASS: "):
		err = fmt.Errorf("no test ran:\n%s", output)
	}
	return v, err
}

var violation = regexp.MustCompile(`(?m)^simulation: seed (\d+): ([a-z -]+): `)

// verdictOf finds the first violation in the output of the simulation.
func verdictOf(output string, passed bool) (v verdict, err error) {
	v.output = output
	switch found := violation.FindStringSubmatch(output); {
	case found != nil:
		v.kind = found[2]
		v.seed, err = strconv.Atoi(found[1])
	case !passed:
		err = fmt.Errorf("the simulation failed, and named no violation:\n%s", output)
	case !strings.Contains(output, "simulation: seed"):
		err = fmt.Errorf("the simulation did not run:\n%s", output)
	}
	return v, err
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
