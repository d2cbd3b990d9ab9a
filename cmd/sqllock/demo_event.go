package main

import "time"

// What a worker tells its parent: JSON lines on its standard output.
type demoEvent struct {
	Kind demoKind `json:"kind"`
	// At is when it happened. All processes are on one host, so their clocks
	// agree, while the order in which events arrive does not tell much.
	At time.Time `json:"at"`
	// Waited is how long the worker waited for the lock.
	Waited time.Duration `json:"waited,omitempty"`
	// Overlap says that somebody else was at work.
	Overlap bool `json:"overlap,omitempty"`
	// Left is what the lease had left, at At or later.
	Left time.Duration `json:"left,omitempty"`

	worker *demoWorker // whose event it is; the parent knows
}

type demoKind string

const (
	demoReady    demoKind = "ready"    // wants an order
	demoWaiting  demoKind = "waiting"  // asks for the lock
	demoEntered  demoKind = "entered"  // begins to work
	demoHanging  demoKind = "hanging"  // has entered, and will do nothing until it is killed
	demoFinished demoKind = "finished" // has worked, and is about to release the lock
	demoEnded    demoKind = "ended"    // the process is gone; not sent but found out
)

// What the parent tells a worker, a line each on its standard input. The end of
// the input means: stop.
const (
	orderWork = "work" // do one round
	orderHang = "hang" // take the lock and wait to be killed
)
