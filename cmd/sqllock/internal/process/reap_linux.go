package process

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReapOrphans waits for children that this process has not started. The first process
// of a container becomes the parent of all processes whose parents have ended; unless
// it waits for them, they stay in the process table as zombies. It does nothing where this process gets none.
func ReapOrphans() (stop func()) {
	if !adopts() {
		return func() {}
	}
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

// adopts reports whether orphans become children of this process: of the first one, and of one whose program, or the one
// before it, has asked for that.
func adopts() bool {
	var subreaper int32
	_ = unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&subreaper)), 0, 0, 0) // since Linux 3.4
	return os.Getpid() == 1 || subreaper != 0
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
