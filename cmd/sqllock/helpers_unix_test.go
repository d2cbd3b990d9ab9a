//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// helperCommands are programs that the tests use beside sqllock.
var helperCommands = map[string]func(){
	watchdogName: main,
	gateName:     main,
	"in-group":   inGroup,
}

// inGroup runs a command in a process group of its own, as timeout(1) does.
func inGroup() {
	if err := syscall.Setpgid(0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	become(os.Args[1:])
}

// become replaces this process by a command.
func become(command []string) {
	path, err := exec.LookPath(command[0])
	if err == nil {
		err = syscall.Exec(path, command, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
