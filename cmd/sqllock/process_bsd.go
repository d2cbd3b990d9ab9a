//go:build unix && !linux

package main

import "syscall"

// attributes is empty: these systems do not tell a child of its parent's death.
func attributes() *syscall.SysProcAttr { return nil }
