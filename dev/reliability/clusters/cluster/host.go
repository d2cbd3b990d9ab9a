//go:build linux

package cluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sqllock/sqllock/internal/test/proc"
)

// A host is what a machine is for a node: it has processes, a network and mounts of its own.
type host struct {
	first *proc.Process // whose death ends all others of the host
	ip    string
}

// bare is the program of a host's first process. It reaps the orphans of the others.
const bare = `mount --make-rprivate / && mount -t proc proc /proc && echo ready && while :; do sleep 1; done`

// newHost starts a host without a network.
func newHost() (*host, error) {
	cmd := exec.Command("sh", "-c", bare) //nolint:noctx // it ends with close
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	first, err := launch(cmd)
	if err != nil {
		return nil, fmt.Errorf("start a host: %w", err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		first.Kill()
		return nil, fmt.Errorf("start a host: %w", err)
	}
	return &host{first: first}, nil
}

// ownMemory gives the host a /dev/shm of its own, so that nothing is left in this machine's. The
// directory, which may be in it, stays where it is.
func (h *host) ownMemory(ctx context.Context, directory string) error {
	const script = `mount --bind "$1" /mnt && mount -t tmpfs tmpfs /dev/shm && mkdir -p "$1" && mount --bind /mnt "$1" && umount /mnt`
	return run(ctx, h.inside("", "sh", "-c", script, "sh", directory)...)
}

func (h *host) pid() int { return h.first.Cmd.Process.Pid }

// close kills all processes of the host. Its network goes with the last.
func (h *host) close() { h.first.Kill() }

// inside returns a command that runs on the host, as the given user.
func (h *host) inside(user string, command ...string) []string {
	enter := []string{"nsenter", "--target", strconv.Itoa(h.pid()), "--mount", "--net", "--pid", "--"}
	if user != "" {
		enter = append(enter, "setpriv", "--reuid="+user, "--regid="+user, "--init-groups", "--")
	}
	return append(enter, command...)
}

// inNetwork runs a command that sees the host's network alone.
func (h *host) inNetwork(ctx context.Context, command ...string) error {
	return run(ctx, append([]string{"nsenter", "--target", strconv.Itoa(h.pid()), "--net", "--"}, command...)...)
}

// start starts a daemon on the host. Its output goes to the log.
func (h *host) start(user, log string, environment []string, command ...string) (*proc.Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // the child has its own descriptor
	command = h.inside(user, command...)
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // it ends with the host
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", file, file
	cmd.Env = append(clean(), environment...)
	return launch(cmd)
}

// clean is an environment that changes no program's behaviour.
func clean() []string {
	return []string{"LC_ALL=C.UTF-8", "HOME=/tmp", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
}

// processes returns the processes of the host, as this process numbers them, but for the first
// and its child.
func (h *host) processes() []int {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", h.pid()))
	if err != nil {
		return nil // the host is down
	}
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	var found []int
	for _, path := range all {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil || h.isFirst(pid) {
			continue
		}
		if of, err := os.Readlink(path + "/ns/pid"); err == nil && of == space && proc.State(pid) != 'Z' {
			found = append(found, pid)
		}
	}
	return found
}

// signal sends a signal to all processes of the host.
func (h *host) signal(s syscall.Signal) {
	for _, pid := range h.processes() {
		_ = syscall.Kill(pid, s) // it may have ended
	}
}

// killAll kills the processes of the host and those that they start meanwhile. It returns when
// none is left.
func (h *host) killAll() error {
	return h.until("be killed", syscall.SIGKILL, func(int) bool { return false })
}

// stopAll stops all processes of the host with SIGSTOP, and returns when they are stopped.
func (h *host) stopAll() error {
	return h.until("stop", syscall.SIGSTOP, func(pid int) bool { return proc.State(pid) == 'T' })
}

// until sends a signal to the processes of the host until all that are left are done.
func (h *host) until(what string, s syscall.Signal, done func(pid int) bool) error {
	const limit = time.Minute
	for deadline := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		left := 0
		for _, pid := range h.processes() {
			if !done(pid) {
				_ = syscall.Kill(pid, s) // it may have ended
				left++
			}
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %d processes have not %s after %v", h.ip, left, what, limit)
		}
	}
}

// isFirst reports whether a process is the first of the host, or the child for which that waits.
func (h *host) isFirst(pid int) bool {
	name, fields := proc.Status(pid)
	return pid == h.pid() || name == "sleep" && fields[1] == strconv.Itoa(h.pid())
}

// launch starts a command that is killed when this process dies.
func launch(cmd *exec.Cmd) (*proc.Process, error) {
	proc.OwnGroup(cmd)
	return proc.Start(cmd, syscall.SIGKILL, nil)
}

// run runs a command to its end.
func run(ctx context.Context, command ...string) error {
	_, err := output(ctx, command...)
	return err
}

// output is run, and returns what the command has printed.
func output(ctx context.Context, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), clean()...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return string(text), fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, text)
	}
	return string(text), nil
}
