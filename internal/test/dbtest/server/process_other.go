//go:build !linux

package server

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// runAs returns an error: on this system a server cannot be made to end with its parent,
// so a killed test run would leave servers behind.
func runAs(*exec.Cmd, *account) error {
	return fmt.Errorf("start a server on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func killFamily(parent *os.Process) error { return parent.Kill() }

func childrenOf(int) []int { return nil }

func roomiest() string { return os.TempDir() }
