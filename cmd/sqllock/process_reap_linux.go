package main

import (
	"os"
	"os/signal"
	"syscall"
)

// reapOrphans waits for children that this process has not started, which stay in
// the table of processes for ever otherwise. The first process of a container
// becomes the parent of all whose own parents have ended.
func reapOrphans() (stop func()) {
	ended, leave, left := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		defer close(left)
		for {
			select {
			case <-ended:
				reapOnce()
			case <-leave:
				return
			}
		}
	}()
	return func() {
		signal.Stop(ended)
		close(leave)
		<-left
	}
}

// reapOnce reaps the orphans that have ended.
func reapOnce() {
	own.Lock()
	defer own.Unlock()
	table, _ := processes()
	for _, p := range table {
		if p.zombie && p.parent == os.Getpid() && !own.pids[p.pid] {
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		}
	}
}
