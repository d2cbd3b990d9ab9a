package main

import (
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
)

// profiled runs a task and writes a profile of the processor, of allocations, or none. Both at once
// would say little: sampling allocations takes more time than the allocations.
func profiled(cpu, allocs string, task func() error) error {
	if cpu == "" && allocs == "" {
		return task()
	}
	if cpu != "" && allocs != "" {
		return errUsage
	}
	f, err := os.Create(cpu + allocs)
	if err != nil {
		return err
	}
	if cpu != "" {
		runtime.MemProfileRate = 0
		if err := pprof.StartCPUProfile(f); err != nil {
			return errors.Join(err, f.Close())
		}
		err = task()
		pprof.StopCPUProfile()
		return errors.Join(err, f.Close())
	}
	runtime.MemProfileRate = 512 // bytes between samples: nearly all of them
	err = task()
	return errors.Join(err, pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
