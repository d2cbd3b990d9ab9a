package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// The exit codes of shells for commands that do not run.
const (
	exitCannotRun = 126
	exitNotFound  = 127
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
		// The user has put a relative directory into PATH. Windows looks into the
		// current one unasked.
		return program, nil
	case errors.Is(err, exec.ErrNotFound) && isInPath(name):
		return "", &exec.Error{Name: name, Err: fs.ErrPermission}
	default:
		return program, err
	}
}

// isInPath reports whether there is a file of that name in one of the directories of
// PATH, be it one that cannot be executed.
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

// notRun makes an exitError of why a command does not run.
func notRun(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &exitError{exitNotFound, err}
	}
	return &exitError{exitCannotRun, err}
}
