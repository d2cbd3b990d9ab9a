// Mutants proves that the simulations can fail. It breaks a copy of the library in one place after the
// other, runs a simulation of a few worlds on it, and prints which promise the simulation saw broken, and
// in which world. `make mutants` runs it.
//
// seeds.txt has the worlds of each mutant; one that it does not name has the first ones. A seed has one history, so a mutant that is caught is caught each
// time. The library as it is must survive all of these worlds. A change of the library changes histories: -search
// looks for other worlds for the mutants that survive theirs, and writes them into the table.
//
// It exits with 1 if a mutant survives, if a mutation does not apply or does not compile, or if
// the library as it is does not survive. The mutations are in mutants.txt.
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
	"slices"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("mutants: ")
	var r runner
	flag.StringVar(&r.source, "dir", "../..", "the root `directory` of the module")
	flag.IntVar(&r.search, "search", 0, "try so many `worlds` for a mutant that survives its own, and write the table")
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

// A runner runs simulations on mutants.
type runner struct {
	source   string // the module
	search   int    // how many worlds are tried for a mutant that survives its own
	explains bool
	copied   string // the directory of the copy
	overlay  string // of Go's runtime
	seeds    table
	failed   int
}

// errFailed is what run returns once the table says the rest.
var errFailed = errors.New("not all mutants were caught, or the library was")

// run prints the table: each mutant, and at last the library as it is, which has to survive all of their worlds.
func (r *runner) run(ctx context.Context, matching *regexp.Regexp) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began, chosen := time.Now(), make([]mutation, 0, len(mutations))
	for _, m := range mutations {
		if matching.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	file := filepath.Join(r.source, "dev", "tools", "mutants", "seeds.txt")
	if r.seeds, err = readTable(file); err != nil {
		return err
	}
	if err := r.prepare(ctx, chosen); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.copied) }()
	fmt.Print("| what is broken | caught as | by seed |\n|---|---|---|\n")
	for b := range r.build(ctx, chosen) {
		if err := r.try(ctx, b); err != nil {
			return err
		}
	}
	if err := r.control(ctx, chosen); err != nil {
		return err
	}
	fmt.Printf("\n%d of %d mutants were caught, in %v\n", len(chosen)-r.failed, len(chosen), time.Since(began).Round(time.Second))
	if r.search > 0 {
		if err := r.seeds.write(file); err != nil {
			return err
		}
	}
	if r.failed > 0 {
		return errFailed
	}
	return nil
}

// prepare copies the module, and compiles it as it is.
func (r *runner) prepare(ctx context.Context, chosen []mutation) (err error) {
	if r.copied, err = os.MkdirTemp("", "sqllock-mutants-"); err != nil {
		return err
	}
	if err := copyModule(ctx, r.source, r.copied); err != nil {
		return err
	}
	if r.overlay, err = makeOverlay(ctx, r.copied); err != nil {
		return err
	}
	for _, s := range simulations {
		if !slices.ContainsFunc(chosen, func(m mutation) bool { return m.simulation() == s }) {
			continue
		}
		if problem := s.compile(ctx, r.copied, r.overlay, r.binary(s, "control")); problem != "" {
			return errors.New(problem)
		}
	}
	return nil
}

func (r *runner) binary(s *simulation, of string) string {
	return filepath.Join(r.copied, s.name+"-"+of+".test")
}

// A built is a mutant that is compiled, or that has a problem.
type built struct {
	mutation
	problem string
}

// build compiles mutants, the next one while one runs.
func (r *runner) build(ctx context.Context, chosen []mutation) <-chan built {
	done := make(chan built)
	go func() {
		defer close(done)
		for _, m := range chosen {
			b := built{mutation: m}
			undo, err := m.apply(r.copied)
			if err == nil {
				b.problem = m.simulation().compile(ctx, r.copied, r.overlay, r.binary(m.simulation(), m.name))
				err = undo()
			}
			if err != nil {
				b.problem = err.Error()
			}
			select {
			case done <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	return done
}

// try runs a mutant, and prints its row.
func (r *runner) try(ctx context.Context, b built) error {
	v, s, binary := verdict{}, b.simulation(), r.binary(b.simulation(), b.name)
	defer func() { _ = os.Remove(binary) }()
	caught := "DOES NOT COUNT"
	if v.output = b.problem; b.problem == "" {
		var err error
		seeds := r.seeds[b.name]
		if len(seeds) == 0 {
			seeds = between(s.first, min(s.first+unlisted, s.last+1))
		}
		v, err = s.run(ctx, binary, seeds)
		if err == nil && v.kind == "" && r.search > 0 {
			v, err = r.find(ctx, b, binary)
		}
		if err != nil {
			return err
		}
		if caught = v.kind; caught == "" {
			caught = "SURVIVES"
		}
	}
	if v.kind == "" {
		r.failed++
	}
	fmt.Printf("| %s | %s | %s %d |\n", b.breaks, caught, s.name, v.seed)
	if r.explains || b.problem != "" {
		fmt.Printf("%s: %s\n", b.name, v.output)
	}
	return nil
}

// unlisted is how many worlds a mutant has, from the first on, that has none in the table.
const unlisted = 40

func between(first, until int) (seeds []int) {
	for seed := first; seed < until; seed++ {
		seeds = append(seeds, seed)
	}
	return seeds
}

// If the library changes, one world may not catch a mutant any more. -search looks for enough of them, but not much
// further than up to the first.
const (
	enough  = 2
	further = 5
)

// find looks for worlds that catch a mutant. It returns the verdict of the first.
func (r *runner) find(ctx context.Context, b built, binary string) (first verdict, err error) {
	s, found := b.simulation(), []int(nil)
	for from, until := s.first, min(s.first+r.search, s.last+1); from < until && len(found) < enough; {
		v, err := s.run(ctx, binary, between(from, until))
		if err != nil || v.kind == "" {
			return first, err
		}
		if found = append(found, v.seed); len(found) == 1 {
			first, until = v, min(until, v.seed+further)
		}
		r.seeds[b.name], from = found, v.seed+1
	}
	return first, nil
}

// control runs all worlds of mutants on the library as it is.
func (r *runner) control(ctx context.Context, chosen []mutation) error {
	caught := "-"
	for _, s := range simulations {
		var seeds []int
		for _, m := range chosen {
			if m.simulation() == s {
				seeds = append(seeds, r.seeds[m.name]...)
			}
		}
		slices.Sort(seeds)
		if seeds = slices.Compact(seeds); len(seeds) == 0 {
			continue
		}
		v, err := s.run(ctx, r.binary(s, "control"), seeds)
		if err != nil {
			return err
		}
		if v.kind != "" {
			r.failed++
			caught = fmt.Sprintf("CAUGHT: %s, %s %d", v.kind, s.name, v.seed)
			fmt.Println(v.output)
		}
	}
	fmt.Printf("| nothing: the library as it is | %s | all of these |\n", caught)
	return nil
}
