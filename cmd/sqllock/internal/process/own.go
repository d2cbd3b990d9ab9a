package process

import (
	"os/exec"
	"sync"
)

// own are the processes that this one has started and waits for. The first process of
// a container becomes the parent of others too: those whose parents have ended.
var own = struct {
	sync.Mutex
	pids map[int]bool
}{pids: make(map[int]bool)}

// StartOwn starts a process that WaitOwn waits for. ReapOrphans leaves it alone.
func StartOwn(cmd *exec.Cmd) error {
	own.Lock()
	defer own.Unlock()
	err := cmd.Start()
	if err == nil {
		own.pids[cmd.Process.Pid] = true
	}
	return err
}

// WaitOwn waits for a process that StartOwn has started.
func WaitOwn(cmd *exec.Cmd) error {
	err := cmd.Wait()
	own.Lock()
	defer own.Unlock()
	delete(own.pids, cmd.Process.Pid)
	return err
}
