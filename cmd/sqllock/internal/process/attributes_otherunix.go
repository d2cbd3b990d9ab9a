//go:build unix && !linux

package process

import "syscall"

// attributes cannot tie the child's life to that of this process: only Linux can.
func attributes(ownGroup, _ bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: ownGroup}
}
