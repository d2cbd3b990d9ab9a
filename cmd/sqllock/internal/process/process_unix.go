//go:build unix

package process

// A Process is an entry of the system's process table.
type Process struct {
	PID, Parent, Group int
	Started            string // differs for two processes that have the same number one after the other; "" if not known
	Stopped            bool
	Zombie             bool // it has ended, and its parent has not waited for it yet
}
