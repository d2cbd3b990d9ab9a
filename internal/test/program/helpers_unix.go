//go:build unix

package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// helpers returns the programs that the tests use besides sqllock.
func helpers(sqllock func()) map[string]func() {
	commands := map[string]func(){
		"in-group":       inGroup,
		"without-rights": func() { withoutRights(sqllock) },
	}
	addSystemHelpers(commands)
	return commands
}

func inGroup() {
	if err := syscall.Setpgid(0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	become(os.Args[1:])
}

func withoutRights(sqllock func()) {
	const unprivileged = 65534 // a user without rights on most systems
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(unprivileged), syscall.Setuid(unprivileged)); err != nil {
			panic(err)
		}
	}
	os.Args = os.Args[1:]
	sqllock()
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

// startAgain replaces this process by a new one of the same program. If that fails, it goes on.
func startAgain() {
	if program, err := os.Executable(); err == nil {
		_ = syscall.Exec(program, os.Args, os.Environ())
	}
}

// catchIgnored catches the signals that this process was started to ignore, as by nohup or in the background of a
// script. execve resets what is caught, so that the programs which tests start do not ignore them, too.
func catchIgnored() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
