package process

import "syscall"

func attributes(bool, bool) *syscall.SysProcAttr { return nil }
