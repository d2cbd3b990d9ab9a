//go:build !linux

package proc

import (
	"os/exec"
	"syscall"
)

// OwnGroup does nothing here.
func OwnGroup(*exec.Cmd) {}

func endWithParent(*exec.Cmd, syscall.Signal) {}
