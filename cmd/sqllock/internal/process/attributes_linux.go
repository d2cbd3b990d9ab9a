package process

import "syscall"

// attributes can make the kernel kill the child when this process dies, even by
// SIGKILL.
func attributes(ownGroup, tied bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: ownGroup}
	if tied {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	return attributes
}
