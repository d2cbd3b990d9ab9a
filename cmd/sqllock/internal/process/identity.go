package process

// An Identity is one process: a number alone may be another one's later.
type Identity struct {
	PID     int
	Started string // what the system says of its start; "" if it says nothing
}

// Identify returns the process that has a number, if there is one.
func Identify(pid int) (id Identity, ok bool) {
	started, ok := startOf(pid)
	return Identity{pid, started}, ok
}

// Lives reports whether the process has not ended.
func (id Identity) Lives() bool {
	started, ok := startOf(id.PID)
	return ok && started == id.Started
}
