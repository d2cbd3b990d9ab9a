package server

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	memory = "/dev/shm"
	// enough is room for the data of all servers, about 1.5 GiB, and as much for other
	// programs.
	enough = 4 << 30
)

// roomiest is the directory for temporary files that should be kept in memory.
func roomiest() string {
	var directory unix.Statfs_t
	var machine unix.Sysinfo_t
	if unix.Statfs(memory, &directory) != nil || unix.Sysinfo(&machine) != nil ||
		directory.Bavail*uint64(directory.Bsize) < enough || machine.Freeram*uint64(machine.Unit) < enough {
		return os.TempDir()
	}
	return memory
}
