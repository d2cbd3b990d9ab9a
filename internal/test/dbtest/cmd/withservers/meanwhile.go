package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// runMeanwhile starts the commands one after the other, and returns a function that waits for
// them; they are interrupted if ctx ends. They only prepare, such as a compiler that fills Go's
// cache: the run's own command does their work again and reports its errors, so their output
// and errors do not matter.
func runMeanwhile(ctx context.Context, all commands) (wait func()) {
	var done sync.WaitGroup
	done.Go(func() {
		runtime.LockOSThread() // see runCommand
		defer runtime.UnlockOSThread()
		for _, arguments := range all {
			cmd := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it removes its files
			cmd.WaitDelay = 10 * time.Second
			cmd.SysProcAttr = attributes()
			_ = cmd.Run()
		}
	})
	return done.Wait
}
