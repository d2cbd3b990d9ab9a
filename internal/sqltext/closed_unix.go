//go:build !windows

package sqltext

import "syscall"

// closedBySystem are the system's errors of a connection that was closed.
var closedBySystem = []error{syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE}
