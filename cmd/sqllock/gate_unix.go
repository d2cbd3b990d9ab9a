//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// A gate is one seen from this process: the socket to it.
type gate struct {
	program string
	socket  *os.File
	theirs  int // the other end, or -1
}

// newGate makes cmd start with a gate.
func newGate(cmd *exec.Cmd) (*gate, error) {
	self, err := thisProgram()
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

// socketpair returns two sockets, of which only the second outlasts execve. It is
// not among the ExtraFiles of exec.Cmd: they would take the numbers of files that
// the user has opened for the command.
func socketpair() (ends [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if ends, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); err == nil {
		syscall.CloseOnExec(ends[0])
	}
	return ends, err
}

// started closes what only the gate needs.
func (g *gate) started() {
	_ = syscall.Close(g.theirs)
}

// named says of an error of the gate's start which program it is about.
func (g *gate) named(err error) error {
	_ = g.socket.Close()
	var path *fs.PathError
	if errors.As(err, &path) {
		path.Path = g.program
	}
	return err
}

// open lets the gate become the command. An error is why it cannot.
func (g *gate) open() error {
	defer func() { _ = g.socket.Close() }()
	if _, err := g.socket.Write([]byte("\n")); err != nil {
		return nil // it was killed: its state tells
	}
	var number int
	if n, _ := fmt.Fscan(g.socket, &number); n != 1 {
		return nil // the socket was closed: it has become the command
	}
	return &fs.PathError{Op: "exec", Path: g.program, Err: syscall.Errno(number)}
}

// abandon ends the gate before it becomes the command.
func (g *gate) abandon() { _ = g.socket.Close() }

// isGate reports whether this process was started as a gate.
func isGate() bool { return filepath.Base(os.Args[0]) == gateName && len(os.Args) > 3 }

// beGate becomes the command of the arguments when it is told to. It returns if it
// is not, or cannot.
func beGate() {
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
