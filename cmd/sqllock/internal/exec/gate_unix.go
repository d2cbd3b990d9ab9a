//go:build unix

package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// A gate is what a command is at first: a process of this program that waits until a
// watchdog is ready, and then becomes the command. A command that started at once could
// run, and have children, before a watchdog can kill it. The value has the socket to the
// process.
type gate struct {
	program string
	socket  *os.File
	theirs  int // the other end, or -1
}

// newGate changes cmd to start as a gate.
func newGate(cmd *exec.Cmd) (*gate, error) {
	self, err := process.Executable()
	if err != nil {
		return nil, err
	}
	ends, err := socketpair()
	if err != nil {
		return nil, err
	}
	g := &gate{program: cmd.Path, socket: os.NewFile(uintptr(ends[0]), "gate"), theirs: ends[1]}
	cmd.Path, cmd.Args = self, append([]string{gateName, strconv.Itoa(g.theirs), cmd.Path}, cmd.Args...)
	return g, nil
}

// socketpair returns two sockets. Only the second stays open after execve. It is not one
// of the ExtraFiles of exec.Cmd, which would take the numbers of files that the user
// has opened for the command.
func socketpair() (ends [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if ends, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); err == nil {
		syscall.CloseOnExec(ends[0])
	}
	return ends, err
}

// started closes the socket of the gate.
func (g *gate) started() {
	_ = syscall.Close(g.theirs)
}

// named replaces the program in an error of the gate's start by that of the command.
func (g *gate) named(err error) error {
	_ = g.socket.Close()
	var path *fs.PathError
	if errors.As(err, &path) {
		path.Path = g.program
	}
	return err
}

// open lets the gate become the command. It returns an error if the gate cannot.
func (g *gate) open() error {
	defer func() { _ = g.socket.Close() }()
	if _, err := g.socket.Write([]byte("\n")); err != nil {
		return nil // the gate was killed, which its state shows
	}
	var number int
	if n, _ := fmt.Fscan(g.socket, &number); n != 1 {
		return nil // execve has closed the socket
	}
	return &fs.PathError{Op: "exec", Path: g.program, Err: syscall.Errno(number)}
}

// abandon ends the gate before it becomes the command.
func (g *gate) abandon() { _ = g.socket.Close() }

// isGate reports whether this process was started as a gate.
func isGate() bool { return filepath.Base(os.Args[0]) == gateName && len(os.Args) > 3 }

// runGate becomes the command of the arguments when open is called. It returns if the
// other process ends before that, or if the command cannot run.
func runGate() {
	fd, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return
	}
	syscall.CloseOnExec(fd)
	socket := os.NewFile(uintptr(fd), "gate")
	if _, err := socket.Read(make([]byte, 1)); err != nil {
		return // the other process has ended
	}
	var number syscall.Errno
	if errors.As(execute(os.Args[2], os.Args[3:]), &number) {
		_, _ = fmt.Fprintln(socket, int(number))
	}
}
