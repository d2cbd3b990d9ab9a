package main

import "syscall"

// attributes lets the command end when this process is killed: its servers are
// gone then.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
