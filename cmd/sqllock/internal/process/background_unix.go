//go:build unix

package process

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// InBackground starts a process that gets neither the terminal's keys nor signals to a group.
func InBackground() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// CloseInherited closes the files that this process was started with, but for the standard ones. Those that it has opened
// itself are not inherited by others: the runtime of Go opens all so.
func CloseInherited() {
	entries, _ := os.ReadDir("/dev/fd") // those that were read, in case of an error
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}
