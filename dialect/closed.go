package dialect

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"syscall"
)

// classOfOther returns the class of an error that did not come from the server.
func classOfOther(err error) Class {
	if isClosed(err) {
		return Closed
	}
	return Unknown
}

// isClosed reports whether the network or the driver says that the connection was closed.
func isClosed(err error) bool {
	for _, closed := range []error{
		driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
	} {
		if errors.Is(err, closed) {
			return true
		}
	}
	var unsent interface{ SafeToRetry() bool } // pgx's "conn closed"
	return errors.As(err, &unsent) && unsent.SafeToRetry()
}
