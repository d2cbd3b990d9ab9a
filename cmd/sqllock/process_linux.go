package main

import "syscall"

// attributes has the kernel kill the child when this process dies, however it
// dies: a command must not go on without the lock that it was started under.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
