package main

import "syscall"

// attributes make the kernel end the command when this process is killed, since its servers
// end then.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
