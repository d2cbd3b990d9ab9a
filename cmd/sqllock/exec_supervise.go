package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/sqllock/sqllock"
)

// The exit codes of shells for commands that do not run.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

// resolve finds the program of the command.
func (x *execution) resolve() (err error) {
	if x.program, err = exec.LookPath(x.command[0]); err != nil {
		return notRun(err)
	}
	return nil
}

// notRun makes an exitError of why a command does not run.
func notRun(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &exitError{exitNotFound, err}
	}
	return &exitError{exitCannotRun, err}
}

// supervise runs the command under the lease, and gives the lease back.
func (x *execution) supervise(h *holding, signals <-chan os.Signal) error {
	child, err := startChild(x.commandUnder(h.lease), controllingTerminal())
	if err != nil {
		x.release(h.lease, 0)
		return notRun(err)
	}
	x.attend(h.lease.Context(), child, signals)
	code := child.exitCode()
	if x.release(h.lease, x.minHold) {
		return &exitError{exitLockLost, fmt.Errorf("the lock %q was lost while the command ran; the command ended with %v", x.key, child.state)}
	}
	if code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// commandUnder is the user's command, which gets to know its lock.
func (x *execution) commandUnder(lease *sqllock.Lease) *exec.Cmd {
	//nolint:noctx // it is stopped by attend: a context can only kill, and only the one process
	cmd := exec.Command(x.program)
	cmd.Args = x.command
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.stdin, x.stdout, x.stderr
	cmd.Env = append(os.Environ(),
		"SQLLOCK_KEY="+x.key,
		"SQLLOCK_TOKEN="+strconv.FormatInt(lease.Token(), 10),
		// Fractions of a second, which many a script cannot read, are cut off:
		// that is on the safe side.
		"SQLLOCK_DEADLINE="+lease.Deadline().UTC().Format(time.RFC3339))
	return cmd
}

// attend passes signals on to the child until it has ended, and stops it if the
// lease is over before.
func (x *execution) attend(lease context.Context, child *child, signals <-chan os.Signal) {
	for {
		select {
		case <-child.ended:
			return
		case s := <-signals:
			if !child.hasFromTerminal(s) {
				child.signal(s)
			}
		case <-lease.Done():
			x.say("the lock %q is lost: the command gets SIGTERM, and SIGKILL if it is still there in %s", x.key, short(x.grace))
			child.signal(syscall.SIGTERM)
			child.killAfter(x.grace)
			return
		}
	}
}

// release gives the lease back, to be free when atLeast has passed since it was
// acquired, and tells whether it was lost before. Any other trouble leaves a row
// that expires by itself, and does not undo what was done under the lock.
func (x *execution) release(lease *sqllock.Lease, atLeast time.Duration) (lost bool) {
	ctx := lease.Context() // Unlock does its work also when it has ended
	_, err := answered(ctx, patience, func() (struct{}, error) {
		if atLeast > 0 {
			return struct{}{}, lease.UnlockAfter(ctx, atLeast)
		}
		return struct{}{}, lease.Unlock(ctx)
	})
	switch {
	case err == nil:
		x.mention("released %q", x.key)
	case errors.Is(err, sqllock.ErrLockLost):
		return true
	default:
		x.say("release %q: %s; it becomes free when its lease ends", x.key, textOf(err))
	}
	return false
}
