// Mutants proves that the simulation can fail. It breaks a copy of the library in one place
// after the other, runs the simulation on it, and prints which promise the simulation saw
// broken, and when. `make mutants` runs it.
//
// The world in which a mutant was caught is run once more with the library as it is, which must
// survive it: otherwise the mutation was not the reason. The first row of the table is the
// library as it is, too.
//
// It exits with 1 if a mutant survives, if a mutation does not apply or does not compile, or if
// the library as it is does not survive. The mutations are in mutations.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("mutants: ")
	var r runner
	flag.StringVar(&r.source, "dir", "../..", "the root `directory` of the module")
	flag.IntVar(&r.worlds, "worlds", 240, "how many `worlds` a mutant has to survive: two processors run 90 in a minute")
	only := flag.String("run", "", "run only the mutations whose names match this `expression`")
	flag.BoolVar(&r.explains, "v", false, "print what the simulation says of each mutant")
	flag.Parse()
	matching, err := regexp.Compile(*only)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = r.run(ctx, matching)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// A runner runs the simulation on mutants.
type runner struct {
	source   string // the module
	worlds   int
	explains bool
	copied   string // the directory of the copy
}

// errFailed is what run returns once the table says the rest.
var errFailed = errors.New("not all mutants were caught, or the library was")

// run prints the table: first the library as it is, which has to survive, then each mutant.
func (r *runner) run(ctx context.Context, matching *regexp.Regexp) error {
	var err error
	if r.copied, err = os.MkdirTemp("", "sqllock-mutants-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.copied) }()
	if err := copyModule(ctx, r.source, r.copied); err != nil {
		return err
	}
	if problem, err := compile(ctx, r.copied, r.control()); problem != "" || err != nil {
		return errors.Join(errors.New(problem), err)
	}
	began, failed := time.Now(), 0
	fmt.Printf(row, "what is broken", "caught by", "after", "cpu", "worlds", "seed")
	all := append([]mutation{{name: "control", breaks: "nothing: the library as it is"}}, mutations...)
	run := 0
	for _, m := range all {
		if !matching.MatchString(m.name) {
			continue
		}
		run++
		v, err := r.try(ctx, m)
		if err != nil {
			return err
		}
		v.print(m)
		if r.explains {
			fmt.Println(v.output)
		}
		if !v.isGood(m) {
			failed++
		}
	}
	fmt.Printf("%d of %d as they should be, in %v\n", run-failed, run, time.Since(began).Round(time.Second))
	if failed > 0 {
		return errFailed
	}
	return nil
}

// try runs the simulation on one mutant.
func (r *runner) try(ctx context.Context, m mutation) (verdict, error) {
	undo, err := m.apply(r.copied)
	if err != nil {
		return verdict{fault: "does not apply", output: err.Error()}, nil //nolint:nilerr // the table says so
	}
	mutant := filepath.Join(r.copied, "mutant.test")
	problem, err := compile(ctx, r.copied, mutant)
	if err = errors.Join(err, undo()); problem != "" || err != nil {
		return verdict{fault: "does not compile", output: problem}, err
	}
	v, err := simulate(ctx, r.copied, mutant, r.worlds, "")
	if err != nil || v.kind == "" || m.isControl() {
		return v, err
	}
	control, err := simulate(ctx, r.copied, r.control(), r.worlds, v.seed)
	if control.kind != "" || control.fault != "" {
		v.fault, v.output = "the library as it is does not survive this world either", control.output
	}
	return v, err
}

// control is the simulation of the library as it is.
func (r *runner) control() string { return filepath.Join(r.copied, "control.test") }

const row = "%-80s  %-16s %8s %8s %7s  %s\n"

func (v verdict) print(m mutation) {
	caught := v.kind
	switch {
	case v.fault != "":
		caught = "DOES NOT COUNT"
	case caught == "" && !m.isControl():
		caught = "SURVIVES"
	case caught == "":
		caught = "-"
	}
	seed := "-"
	if v.kind != "" {
		seed = v.seed
	}
	fmt.Printf(row, m.breaks, caught, seconds(v.took), seconds(v.cpu), strconv.Itoa(v.worlds), seed)
	if v.fault != "" {
		fmt.Printf("    %s: %s: %s\n", m.name, v.fault, v.output)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func (v verdict) isGood(m mutation) bool {
	return v.fault == "" && (v.kind == "") == m.isControl()
}
