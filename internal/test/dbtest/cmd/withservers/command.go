package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/sqllock/sqllock/internal/test/proc"
)

// commands is a flag that can occur several times. Its values are split at blanks.
type commands [][]string

func (c *commands) String() string { return "" }

func (c *commands) Set(value string) error {
	fields := strings.Fields(value)
	if len(fields) == 0 {
		return errors.New("no command")
	}
	*c = append(*c, fields)
	return nil
}

// runAll runs the commands one after the other, until ctx ends. It returns the exit code of the
// first one that has failed.
func runAll(ctx context.Context, all commands, environment []string, signals <-chan os.Signal) (code int) {
	for _, arguments := range all {
		if ctx.Err() != nil {
			break
		}
		code = cmp.Or(code, runCommand(arguments, environment, signals))
	}
	return code
}

// runCommand runs the command, forwards signals to it, and returns its exit code, or 128 plus
// the signal's number if a signal has ended it.
//
// The command receives a Ctrl-C twice, from the terminal and from here, since it cannot be
// distinguished from a signal to this process alone.
func runCommand(arguments, environment []string, signals <-chan os.Signal) int {
	//nolint:noctx // a context can only kill; signals are forwarded instead
	cmd := exec.Command(arguments[0], arguments[1:]...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	p, err := proc.Start(cmd, syscall.SIGTERM, nil) // its servers end with this process
	if err != nil {
		say("%v", err)
		return exitNotFound
	}
	go forward(signals, cmd.Process, p.Ended)
	<-p.Ended
	return exitCode(p.Err)
}

func forward(signals <-chan os.Signal, to *os.Process, done <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			_ = to.Signal(s) // the command may have ended meanwhile
		case <-done:
			return
		}
	}
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		say("%v", err)
		return exitFailure
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
