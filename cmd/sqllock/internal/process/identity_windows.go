package process

import (
	"errors"
	"strconv"
	"syscall"
)

// startOf returns when a process was started. Its error is ErrEnded if the process has ended.
func startOf(pid int) (started string, err error) {
	const queryLimitedInformation, stillActive, invalidParameter = 0x1000, 259, syscall.Errno(87)
	process, err := syscall.OpenProcess(queryLimitedInformation, false, uint32(pid))
	if errors.Is(err, invalidParameter) {
		return "", ErrEnded
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = syscall.CloseHandle(process) }()
	var code uint32
	if err := syscall.GetExitCodeProcess(process, &code); err != nil {
		return "", err
	}
	if code != stillActive {
		return "", ErrEnded
	}
	var created, ended, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(process, &created, &ended, &kernel, &user); err != nil {
		return "", err
	}
	return strconv.FormatUint(uint64(created.HighDateTime)<<32|uint64(created.LowDateTime), 10), nil
}

// InBackground starts a process that gets neither the console nor its interrupts.
func InBackground() *syscall.SysProcAttr {
	const detachedProcess = 8
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess}
}
