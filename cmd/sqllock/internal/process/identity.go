package process

import (
	"errors"
	"io/fs"
)

// An Identity is one process: a number alone may be another one's later.
type Identity struct {
	PID     int
	Started string // what the system says of its start; "" if it says nothing
}

// ErrEnded is that there is no process of a number, or that it has ended and its parent has not waited for it yet.
var ErrEnded = errors.New("there is no such process")

// Identify returns the process that has a number. Its error is ErrEnded, or why the system does not say.
func Identify(pid int) (Identity, error) {
	started, err := startOf(pid)
	return Identity{pid, started}, err
}

// Lives reports whether the process has not ended, as far as the system says: on a system that cannot open another file, a
// process has not ended for that.
func (id Identity) Lives() bool { return id.isBy(startOf(id.PID)) }

// isBy is Lives by what startOf returns. A process that this user could look at and no longer can is another one.
func (id Identity) isBy(started string, err error) bool {
	if err != nil {
		return !errors.Is(err, ErrEnded) && !errors.Is(err, fs.ErrPermission)
	}
	return started == id.Started
}
