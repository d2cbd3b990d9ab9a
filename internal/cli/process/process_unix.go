//go:build unix

package process

// A Process is an entry of the system's process table.
type Process struct {
	PID, Parent, Group int
	Stopped            bool
	Zombie             bool // it has ended, and its parent has not waited for it yet
}
