package main

import (
	"os/exec"
	"sync"
)

// own are the processes that this one has started and waits for itself. The first
// process of a container gets others as well: those whose parents have ended.
var own = struct {
	sync.Mutex
	pids map[int]bool
}{pids: make(map[int]bool)}

// startOwn starts a process that waitOwn waits for.
func startOwn(cmd *exec.Cmd) error {
	own.Lock()
	defer own.Unlock()
	err := cmd.Start()
	if err == nil {
		own.pids[cmd.Process.Pid] = true
	}
	return err
}

func waitOwn(cmd *exec.Cmd) error {
	err := cmd.Wait()
	own.Lock()
	defer own.Unlock()
	delete(own.pids, cmd.Process.Pid)
	return err
}
