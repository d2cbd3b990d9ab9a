package demo

import "time"

// An event is what a worker reports to its parent: JSON lines on its standard output.
type event struct {
	Kind eventKind `json:"kind"`
	// At is when it happened. All processes are on one host, so their clocks agree.
	// Events may arrive in another order.
	At time.Time `json:"at"`
	// Waited is how long the worker waited for the lock.
	Waited time.Duration `json:"waited,omitempty"`
	// Overlap is true if another process was working.
	Overlap bool `json:"overlap,omitempty"`
	// Left is how long the lease still lasted at At or later.
	Left time.Duration `json:"left,omitempty"`

	worker int // the number of the worker, set by the parent
}

type eventKind string

const (
	ready    eventKind = "ready"    // the worker waits for an order
	waiting  eventKind = "waiting"  // it tries to acquire the lock
	entered  eventKind = "entered"  // it starts to work
	hanging  eventKind = "hanging"  // it has entered, and waits to be killed
	finished eventKind = "finished" // it has worked, and is about to release the lock
	ended    eventKind = "ended"    // the process has ended; the parent creates this event
)

// The orders of the parent to a worker, one a line on its standard input. At the end of
// the input, the worker stops.
const (
	orderWork = "work" // do one round
	orderHang = "hang" // acquire the lock and wait to be killed
)
