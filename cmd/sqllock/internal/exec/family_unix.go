//go:build unix

package exec

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// A family is what a command is with all that it has started: the process, its descendants, and the
// members of its process group with theirs. exec and the watchdog end the same family.
type family struct {
	root, group int // group is 0 if other processes belong to it too
	members     []process.Process
}

func newFamily(root, group int) *family {
	return &family{root: root, group: group, members: []process.Process{{PID: root}}}
}

// familyOf returns the family of a command.
func familyOf(c *process.Child) *family {
	group := c.Cmd.Process.Pid
	if c.SharesTerminal {
		group = 0
	}
	return newFamily(c.Cmd.Process.Pid, group)
}

// end ends a command whose lease is lost: with SIGTERM, and with SIGKILL what is left of its family
// after the grace period. Members in other groups get SIGTERM when the command has ended, which may
// end them itself before.
func (x *execution) end(c *process.Child) {
	f := familyOf(c)
	f.terminate()
	deadline, poll := time.NewTimer(x.grace), time.NewTicker(10*time.Millisecond)
	defer deadline.Stop()
	defer poll.Stop()
	for running := c.Ended; running != nil || !f.hasEnded(); {
		select {
		case <-running:
			running = nil
			f.terminateRest()
		case <-poll.C:
		case <-deadline.C:
			f.kill()
			<-c.Ended
			return
		}
	}
}

// terminate finds the family and sends SIGTERM to the command, with its group if it has its own. All
// are stopped for that, so that none can start another, or react to the end of another, unseen.
func (f *family) terminate() {
	f.stop()
	command := f.root
	if f.group != 0 {
		command = -f.group
	}
	_ = syscall.Kill(command, syscall.SIGTERM)
	_ = syscall.Kill(command, syscall.SIGCONT) // a stopped process does not handle SIGTERM
	f.signal(syscall.SIGCONT)
}

// terminateRest sends SIGTERM to the members that terminate has left to the command.
func (f *family) terminateRest() {
	f.forget()
	for _, p := range f.members {
		if f.group == 0 || p.Group != f.group {
			_ = syscall.Kill(p.PID, syscall.SIGTERM)
		}
	}
}

// kill kills the family. Descendants are killed before their parents: the kernel may continue a
// stopped process when its parent ends.
func (f *family) kill() {
	f.forget()
	f.stop()
	f.signal(syscall.SIGKILL)
	if f.group != 0 {
		_ = syscall.Kill(-f.group, syscall.SIGKILL)
	}
}

// signal sends a signal to the members, children first.
func (f *family) signal(s syscall.Signal) {
	for _, p := range slices.Backward(f.members) {
		_ = syscall.Kill(p.PID, s)
	}
}

// stop stops all members, and finds those that are not known yet.
func (f *family) stop() {
	if f.group != 0 {
		_ = syscall.Kill(-f.group, syscall.SIGSTOP)
	}
	known := make([]int, len(f.members))
	for i, p := range f.members {
		known[i] = p.PID
	}
	stopped := stopFamily(known, f.group, process.Table, func(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) })
	table, _ := process.Table() // without one, only the command itself was found
	f.members = make([]process.Process, len(stopped))
	for i, pid := range stopped {
		f.members[i] = process.Process{PID: pid}
		if at := slices.IndexFunc(table, func(p process.Process) bool { return p.PID == pid }); at >= 0 {
			f.members[i] = table[at]
		}
	}
}

// hasEnded reports whether all members that are known have ended, and forgets those that have.
func (f *family) hasEnded() bool {
	f.members = slices.DeleteFunc(f.members, func(p process.Process) bool { return syscall.Kill(p.PID, 0) != nil })
	return len(f.members) == 0
}

// forget forgets the members that have ended, whose numbers other processes may have by now.
func (f *family) forget() {
	table, err := process.Table()
	if err != nil {
		return
	}
	f.members = slices.DeleteFunc(f.members, func(m process.Process) bool {
		return !slices.ContainsFunc(table, func(p process.Process) bool {
			return p.PID == m.PID && (p.Started == m.Started || m.Started == "") && !p.Zombie
		})
	})
}

// Looks, and not time, limit the wait for processes: a machine that stands still for seconds must not
// let a family go.
const (
	pause = time.Millisecond
	// looks is how often stopFamily looks in vain: a process that waits for a file system that does
	// not answer neither stops nor ends.
	looks = 500
	// mostLooks limits all looks for a family that grows all the time.
	mostLooks = 10 * looks
)

// stopFamily stops the known members of a family and all others, and returns them, parents before
// their children. Processes of other users, which cannot be stopped, are not in it.
func stopFamily(known []int, group int, table func() ([]process.Process, error), stop func(pid int) error) []int {
	family, others := stopEach(known, stop)
	// A process may start another child until it is listed as stopped. The first table
	// read after that contains all of them.
	allStopped := false
	for all, inVain := 0, 0; all < mostLooks && inVain < looks; all, inVain = all+1, inVain+1 {
		time.Sleep(pause)
		now, err := table()
		if err != nil {
			continue
		}
		found := relatives(now, slices.Concat(family, others), group)
		if allStopped && len(found) == 0 {
			break
		}
		ours, theirs := stopEach(found, stop)
		if len(ours) > 0 {
			inVain = 0
		}
		family, others = append(family, ours...), append(others, theirs...)
		allStopped = areStopped(now, family)
	}
	return family
}

// stopEach stops processes, and returns which were told so and which this user may not stop.
func stopEach(pids []int, stop func(pid int) error) (stopped, others []int) {
	for _, pid := range pids {
		switch err := stop(pid); {
		case err == nil:
			stopped = append(stopped, pid)
		case errors.Is(err, syscall.EPERM):
			others = append(others, pid)
		}
	}
	return stopped, others
}

// relatives returns the children of a family and the members of its group that are not
// in the family yet.
func relatives(table []process.Process, family []int, group int) (found []int) {
	for _, p := range table {
		related := slices.Contains(family, p.Parent) || group != 0 && p.Group == group
		if related && !slices.Contains(family, p.PID) {
			found = append(found, p.PID)
		}
	}
	return found
}

// areStopped reports whether no process of a family was running.
func areStopped(table []process.Process, family []int) bool {
	return !slices.ContainsFunc(table, func(p process.Process) bool {
		return slices.Contains(family, p.PID) && !p.Stopped && !p.Zombie
	})
}
