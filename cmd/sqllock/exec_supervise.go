package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/sqllock/sqllock"
)

// supervise runs the command under the lease, and gives the lease back.
func (x *execution) supervise(h *holding, signals chan os.Signal) error {
	terminal := controllingTerminal()
	if !terminal {
		notifyStops(signals)
	}
	child, dismiss, err := x.start(h.lease, terminal)
	if err != nil {
		x.release(h.lease, 0)
		if errors.Is(err, sqllock.ErrLockLost) {
			return &exitError{exitLockLost, fmt.Errorf("the lock %q was lost before the command could run", x.key)}
		}
		return notRun(err)
	}
	x.attend(h.lease.Context(), child, signals)
	dismiss()
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
	// It has no context, which can only kill, and only the one process: attend stops it.
	cmd := &exec.Cmd{Path: x.program, Args: x.command, Stdin: x.stdin, Stdout: x.stdout, Stderr: x.stderr}
	cmd.Env = append(os.Environ(),
		keyVariable+"="+x.key,
		"SQLLOCK_TOKEN="+strconv.FormatInt(lease.Token(), 10),
		// Fractions of a second, which many a script cannot read, are cut off:
		// that is on the safe side.
		"SQLLOCK_DEADLINE="+lease.Deadline().UTC().Format(time.RFC3339))
	return cmd
}

// stopDelay is the time that a command has for what it does on SIGTSTP.
const stopDelay = 100 * time.Millisecond

// attend passes signals on to the child until it has ended, and stops it if the
// lease is over before.
//
// With a group of its own the child does not see SIGTSTP and SIGCONT that are sent
// to the group of this process. It is stopped before this process is, and continued
// after it, so that it never works while the lease is not renewed.
func (x *execution) attend(lease context.Context, child *child, signals <-chan os.Signal) {
	var stopping <-chan time.Time
	for {
		select {
		case <-child.ended:
			return
		case s := <-signals:
			switch {
			case isStop(s):
				stopping = time.After(stopDelay)
				child.signal(s)
			case isContinue(s):
				stopping = nil
				if lease.Err() == nil { // else it ends before it can work
					child.resume()
				}
			case !child.hasFromTerminal(s):
				child.signal(s)
			}
		case <-stopping:
			if len(signals) > 0 { // SIGCONT perhaps, which would not end a stop after it
				stopping = time.After(0)
				continue
			}
			child.stop()
			x.suspend()
		case <-lease.Done():
			x.say("the lock %q is lost: the command gets SIGTERM, and SIGKILL if it is still there in %s", x.key, short(x.grace))
			child.signal(syscall.SIGTERM)
			child.resume() // a stopped one does not see the other
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
