//go:build unix

package main

import (
	"errors"
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
	// sqllock itself, with the name as its first argument.
	"without-rights": withoutRights,
}

// inGroup runs a command in a process group of its own, as timeout(1) does.
func inGroup() {
	if err := syscall.Setpgid(0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	become(os.Args[1:])
}

// withoutRights runs sqllock as a user who may not do everything.
func withoutRights() {
	const nobody = 65534
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			panic(err)
		}
	}
	os.Args = os.Args[1:]
	main()
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
