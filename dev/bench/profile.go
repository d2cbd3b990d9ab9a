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

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/load"
)

// runProfile profiles this process while one or more workers acquire and release on a real
// server.
func runProfile(ctx context.Context, arguments []string) (err error) {
	set := flags("profile")
	out := set.String("out", ".", "the directory for cpu.pprof and allocs.pprof")
	name := set.String("contender", "sqllock autocommit/pgx", "the contender to profile")
	workers := set.Int("workers", 1, "how many acquire at a time, each a key of its own")
	lasting := set.Duration("for", 5*time.Second, "how long, for each of the two profiles")
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
	task := func() error {
		pairs, err := arena.Repeat(ctx, chosen[0], *workers, *lasting)
		fmt.Printf("%s: %d pairs in %v; see them with go tool pprof\n", chosen[0].Name, pairs, *lasting)
		return err
	}
	// One after the other: sampling allocations takes more time than the allocations.
	if err := profileCPU(filepath.Join(*out, "cpu.pprof"), task); err != nil {
		return err
	}
	return profileAllocs(filepath.Join(*out, "allocs.pprof"), task)
}

func profileCPU(path string, task func() error) error {
	runtime.MemProfileRate = 0 // do not record the allocations of this part
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(err, f.Close())
	}
	err = task()
	pprof.StopCPUProfile()
	return errors.Join(err, f.Close())
}

func profileAllocs(path string, task func() error) error {
	runtime.MemProfileRate = 512 // bytes between samples: nearly all of them
	if err := task(); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
