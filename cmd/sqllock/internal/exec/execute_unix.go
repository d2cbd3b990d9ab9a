//go:build unix

package exec

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
)

// execute replaces this process by a program. Like execvp(3), and so flock(1) and
// nohup(1), it lets the shell run a script that names no interpreter.
func execute(program string, args []string) error {
	err := syscall.Exec(program, args, os.Environ())
	if errors.Is(err, syscall.ENOEXEC) && isScript(program) {
		return syscall.Exec(shell, underShell(program, args), os.Environ())
	}
	return err
}

const shell = "/bin/sh"

// underShell returns the arguments of a shell that runs a script.
func underShell(program string, args []string) []string {
	if strings.HasPrefix(program, "-") {
		program = "./" + program // else it is an option
	}
	return append([]string{shell, program}, args[1:]...)
}

// isScript reports whether a file may be a shell script, and not a program for another
// machine: its first line has no NUL.
func isScript(program string) bool {
	file, err := os.Open(program)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	beginning := make([]byte, 128)
	n, _ := io.ReadFull(file, beginning)
	line, _, _ := bytes.Cut(beginning[:n], []byte("\n"))
	return !bytes.Contains(line, []byte{0})
}
