package sqltext

import "syscall"

// closedBySystem are the system's errors of a connection that was closed. syscall.ECONNRESET has a number here that no call
// returns.
var closedBySystem = []error{syscall.WSAECONNRESET, syscall.WSAECONNABORTED, syscall.ERROR_NETNAME_DELETED}
