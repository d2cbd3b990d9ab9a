package process

import (
	"strconv"
	"syscall"
)

// startOf returns when a process was started, if it has not ended.
func startOf(pid int) (started string, ok bool) {
	const queryLimitedInformation, stillActive = 0x1000, 259
	process, err := syscall.OpenProcess(queryLimitedInformation, false, uint32(pid))
	if err != nil {
		return "", false
	}
	defer func() { _ = syscall.CloseHandle(process) }()
	var code uint32
	if err := syscall.GetExitCodeProcess(process, &code); err != nil || code != stillActive {
		return "", false
	}
	var created, ended, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(process, &created, &ended, &kernel, &user); err != nil {
		return "", false
	}
	return strconv.FormatUint(uint64(created.HighDateTime)<<32|uint64(created.LowDateTime), 10), true
}

// InBackground has a process get neither the console nor its interrupts.
func InBackground() *syscall.SysProcAttr {
	const detachedProcess = 8
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess}
}
