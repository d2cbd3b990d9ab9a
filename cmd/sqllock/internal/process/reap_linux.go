package process

import (
	"os"
	"os/signal"
	"syscall"
)

// ReapOrphans waits for children that this process has not started. The first process
// of a container becomes the parent of all processes whose parents have ended; unless
// it waits for them, they stay in the process table as zombies.
func ReapOrphans() (stop func()) {
	ended, quit, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		defer close(done)
		for {
			select {
			case <-ended:
				reapOnce()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		signal.Stop(ended)
		close(quit)
		<-done
	}
}

// reapOnce reaps the orphans that have ended.
func reapOnce() {
	own.Lock()
	defer own.Unlock()
	table, _ := Table()
	for _, p := range table {
		if p.Zombie && p.Parent == os.Getpid() && !own.pids[p.PID] {
			_, _ = syscall.Wait4(p.PID, nil, syscall.WNOHANG, nil)
		}
	}
}
