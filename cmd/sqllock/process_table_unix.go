//go:build unix

package main

// A process is what the system says of one.
type process struct {
	pid, parent, group int
	stopped            bool
	zombie             bool // it has ended, and its parent has not taken note yet
}
