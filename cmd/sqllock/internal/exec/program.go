package exec

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// resolve finds the program of the command.
func (x *execution) resolve() error {
	program, err := lookPath(x.command[0])
	if err != nil {
		return notRun(err)
	}
	x.program = program
	return nil
}

// lookPath finds a program as shells do.
func lookPath(name string) (string, error) {
	program, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrDot) && runtime.GOOS != "windows":
		// The user has put a relative directory into PATH. Windows searches the
		// current directory even if it is not in PATH.
		return program, nil
	case errors.Is(err, exec.ErrNotFound) && isInPath(name):
		return "", &exec.Error{Name: name, Err: fs.ErrPermission}
	default:
		return program, err
	}
}

// isInPath reports whether a directory of PATH has a file of that name, even if it cannot
// be executed.
func isInPath(name string) bool {
	if strings.ContainsRune(name, filepath.Separator) {
		return false
	}
	for _, directory := range filepath.SplitList(os.Getenv("PATH")) {
		if info, err := os.Stat(filepath.Join(directory, name)); err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}

// notRun returns an exit.Error for a command that does not run.
func notRun(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &exit.Error{Code: exit.NotFound, Err: err}
	}
	return &exit.Error{Code: exit.CannotRun, Err: err}
}
