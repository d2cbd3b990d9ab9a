package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/load"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// A plan describes what a run measures.
type plan struct {
	settings   load.Settings
	contenders []contender.Contender
	loads      []load.Load
	out        string
	strict     bool // if true, an error of a contender fails the run
}

func runFull(ctx context.Context, arguments []string) error {
	p := plan{settings: load.Full()}
	set := flags("run")
	set.StringVar(&p.out, "out", "bench.json", "the file for the raw data")
	only := set.String("only", "", "beginnings of contenders' names, with commas in between; default all")
	loads := set.String("loads", "", "beginnings of loads' names, with commas in between; default all")
	set.IntVar(&p.settings.Rounds, "rounds", p.settings.Rounds, "how often each is measured")
	set.DurationVar(&p.settings.Measure, "measure", p.settings.Measure, "how long each is measured")
	if err := set.Parse(arguments); err != nil {
		return err
	}
	p.contenders = selected(contender.All(), words(*only), func(c contender.Contender) string { return c.Name })
	p.loads = selected(load.All(), words(*loads), func(l load.Load) string { return l.Name })
	return p.run(ctx)
}

func runContention(ctx context.Context, arguments []string) error {
	p := plan{settings: load.Full()}
	p.settings.Rounds, p.settings.Warm = 1, 0
	set := flags("contention")
	set.StringVar(&p.out, "out", "", "a file for the raw data; default none")
	only := set.String("only", "", "beginnings of contenders' names, with commas in between; default all")
	contest := set.String("contest", "", "contests whose names contain this; default all")
	set.DurationVar(&p.settings.Measure, "for", 10*time.Second, "how long each lasts")
	if err := set.Parse(arguments); err != nil {
		return err
	}
	p.contenders = selected(contender.Contestants(), words(*only), func(c contender.Contender) string { return c.Name })
	p.loads = slices.DeleteFunc(load.Contests(), func(l load.Load) bool { return !strings.Contains(l.Name, *contest) })
	return p.run(ctx)
}

func runSmoke(ctx context.Context, arguments []string) error {
	p := plan{settings: load.Smoke(), loads: append(load.All(), load.Contests()...), strict: true}
	set := flags("smoke")
	set.StringVar(&p.out, "out", "", "a file for the raw data; default none")
	if err := set.Parse(arguments); err != nil {
		return err
	}
	for _, c := range append(contender.All(), contender.Contestants()...) {
		if c.Quick {
			p.contenders = append(p.contenders, c)
		}
	}
	return p.run(ctx)
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// selected returns the items whose names begin with one of the words, or all if there are no words.
func selected[T any](all []T, words []string, name func(T) string) []T {
	if len(words) == 0 {
		return all
	}
	var some []T
	for _, one := range all {
		if slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(name(one), word) }) {
			some = append(some, one)
		}
	}
	return some
}

var errFailed = errors.New("a contender failed")

// run measures and writes the results, even if it is interrupted.
func (p plan) run(ctx context.Context) (err error) {
	began := time.Now()
	arena, err := load.NewArena(ctx, p.settings, p.contenders)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, contender.End(), arena.Close()) }()
	f, err := p.describe(ctx, arena)
	if err != nil {
		return err
	}
	for _, l := range p.loads {
		f.Series = append(f.Series, p.measure(ctx, arena, l)...)
	}
	f.Started, f.Took = began.UTC().Truncate(time.Second), time.Since(began).Truncate(time.Second).String()
	if p.out != "" {
		err = f.Write(p.out)
	}
	if p.strict {
		err = errors.Join(err, failures(f))
	}
	fmt.Fprintf(os.Stderr, "%d series in %s\n", len(f.Series), f.Took)
	return errors.Join(err, ctx.Err())
}

// describe prints what is measured, and where.
func (p plan) describe(ctx context.Context, arena *load.Arena) (*record.File, error) {
	f := &record.File{
		Command: strings.Join(append([]string{"go run ."}, os.Args[1:]...), " "),
		Settings: record.Settings{
			Rounds: p.settings.Rounds, Measure: p.settings.Measure.String(), Warm: p.settings.Warm.String(),
			Connections: p.settings.Connections, TTL: "each library's default",
		},
		Machine:  record.ThisMachine(arena.Dir()),
		Versions: map[string]string{"go": runtime.Version()},
	}
	for _, s := range arena.Servers() {
		version, err := s.Version(ctx)
		if err != nil {
			return nil, err
		}
		durability, err := s.Durability(ctx)
		if err != nil {
			return nil, err
		}
		f.Versions[s.Kind], f.Versions[s.Kind+" durability"] = version, durability
		f.Versions[s.Kind+" settings"] = strings.Join(s.Settings, " ")
	}
	for _, c := range p.contenders {
		f.Contenders = append(f.Contenders, record.Contender{
			Name: c.Name, Library: c.Library, Version: c.VersionOf(ctx), Database: c.Database, Settings: c.Settings,
		})
	}
	return f, nil
}

// measure runs all rounds of a load. The contenders take turns in each round. The first
// contender of a round is the last one of the next round.
func (p plan) measure(ctx context.Context, arena *load.Arena, l load.Load) []record.Series {
	field := p.field(arena, l)
	series := make([]record.Series, len(field))
	for i, c := range field {
		series[i] = record.Series{Load: l.Name, Contender: c.Name, Database: c.Database, Rounds: make([]record.Round, p.settings.Rounds)}
	}
	for round := range p.settings.Rounds {
		for i := range field {
			if ctx.Err() != nil {
				return nil // a partial round cannot be compared
			}
			at := (i + round) % len(field)
			series[at].Rounds[round] = p.once(ctx, arena, l, field[at])
		}
	}
	return series
}

func (p plan) field(arena *load.Arena, l load.Load) []contender.Contender {
	var field []contender.Contender
	for _, c := range l.Enter(p.contenders) {
		if arena.Has(c, l) {
			field = append(field, c)
		}
	}
	return field
}

func (p plan) once(ctx context.Context, arena *load.Arena, l load.Load, c contender.Contender) record.Round {
	began := time.Now()
	err := arena.Tidy(ctx, c)
	var round record.Round
	if err == nil {
		round, err = l.Run(ctx, arena, c)
	}
	if err != nil {
		round.Error = err.Error()
	}
	fmt.Fprintf(os.Stderr, "%-10s %-44s %6.2f s  %s\n", l.Name, c.Name, time.Since(began).Seconds(), tell(round))
	return round
}

// tell prints a round in one line.
func tell(round record.Round) string {
	if round.Error != "" {
		return "ERROR " + strings.ReplaceAll(round.Error[:min(len(round.Error), 300)], "\n", " ")
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(round.Values)) {
		parts = append(parts, fmt.Sprintf("%s %.4g", name, round.Values[name]))
	}
	return strings.Join(parts, ", ")
}

// failures returns an error for the contenders that failed under a load that they support.
func failures(f *record.File) error {
	var errs []error
	for _, s := range f.Series {
		if text := s.Failure(); text != "" {
			errs = append(errs, fmt.Errorf("%w: %s, %s: %s", errFailed, s.Load, s.Contender, text))
		}
	}
	return errors.Join(errs...)
}
