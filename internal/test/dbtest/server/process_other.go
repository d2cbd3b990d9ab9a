//go:build !linux

package server

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// attributes returns an error: on this system a server cannot be made to end with its parent,
// so a killed test run would leave servers behind.
func attributes(*account, syscall.Signal) (*syscall.SysProcAttr, error) {
	return nil, fmt.Errorf("start a server on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func killFamily(parent *os.Process) error { return parent.Kill() }

func childrenOf(int) []int { return nil }

func roomiest() string { return os.TempDir() }
