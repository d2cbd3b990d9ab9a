package sqltext

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
)

// classOfOther returns the class of an error that did not come from the server.
func classOfOther(err error) Class {
	switch {
	case anyIn(err, saysTooLarge):
		return TooLarge
	case isClosed(err):
		return Closed
	default:
		return Unknown
	}
}

// classOfSchema returns the class of an error about a table or a column, by the name of the column.
func classOfSchema(err error) Class {
	if strings.Contains(strings.ToUpper(err.Error()), "EXPIRED_AFTER") {
		return OtherLayout
	}
	return Schema
}

// closedErrors are those of a connection that was closed. The list is made once: a pair in Autocommit classifies an error, too.
var closedErrors = slices.Concat([]error{driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed}, closedBySystem)

// isClosed reports whether the network or the driver says that the connection was closed.
func isClosed(err error) bool {
	if slices.ContainsFunc(closedErrors, func(closed error) bool { return errors.Is(err, closed) }) {
		return true
	}
	var unsent interface{ SafeToRetry() bool } // pgx's "conn busy" and "conn closed"
	return errors.As(err, &unsent) && unsent.SafeToRetry() || anyIn(err, saysClosed)
}

// saysTooLarge reports whether go-sql-driver has not sent a message because of its maxAllowedPacket.
func saysTooLarge(err error) bool {
	return strings.HasPrefix(err.Error(), "packet for query is too large.")
}

// saysClosed reports whether a driver says by the text alone that the connection cannot be used any more: that of
// go-sql-driver and lib/pq is of no type and has no number. go-sql-driver says the first three of a connection that
// the server closes, also while it is made. pgx has a type, which is not known here: from 5.13.0 on it says "conn closed"
// also of a connection on which the statement may have been sent.
func saysClosed(err error) bool {
	switch text := err.Error(); text {
	case "busy buffer", "bad connection", "invalid connection",
		"conn closed",
		"malformed packet", "commands out of sync. You can't run this command now", "commands out of sync. Did you run multiple statements at once?":
		return true
	default:
		return strings.HasPrefix(text, "pq: unexpected ")
	}
}
