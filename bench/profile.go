package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/sqllock/sqllock/bench/internal/contender"
	"github.com/sqllock/sqllock/bench/internal/load"
)

// runProfile profiles this process while one worker, or some, acquire and
// release on a real server.
func runProfile(ctx context.Context, arguments []string) (err error) {
	set := flags("profile")
	out := set.String("out", ".", "the directory for cpu.pprof and allocs.pprof")
	name := set.String("contender", "sqllock statement/pgx", "whom to profile")
	workers := set.Int("workers", 1, "how many acquire at a time, each a key of its own")
	lasting := set.Duration("for", 5*time.Second, "how long")
	if err := set.Parse(arguments); err != nil {
		return err
	}
	chosen := contender.Select(contender.All(), []string{*name})
	if len(chosen) == 0 {
		return fmt.Errorf("%w: no contender %q", errUsage, *name)
	}
	arena, err := load.NewArena(ctx, load.Full(), chosen[:1])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, contender.End(), arena.Close()) }()
	return profiled(*out, func() error {
		pairs, err := arena.Repeat(ctx, chosen[0], *workers, *lasting)
		fmt.Printf("%s: %d pairs in %v; see them with go tool pprof\n", chosen[0].Name, pairs, *lasting)
		return err
	})
}

// profiled writes what task needs of processor and memory.
func profiled(dir string, task func() error) error {
	runtime.MemProfileRate = 512 // bytes between samples: nearly all of them
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return err
	}
	allocs, err := os.Create(filepath.Join(dir, "allocs.pprof"))
	if err != nil {
		return errors.Join(err, cpu.Close())
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	err = task()
	pprof.StopCPUProfile()
	return errors.Join(err, pprof.Lookup("allocs").WriteTo(allocs, 0), cpu.Close(), allocs.Close())
}
