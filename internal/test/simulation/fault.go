package simulation

import (
	"fmt"
	"time"
)

// A Fault is something that may go wrong.
type Fault string

// The faults. Those of a statement meet single statements; the others last for a while, and
// meet all that a process sends.
const (
	Slow        Fault = "slow"         // a statement or its answer takes long
	LostRequest Fault = "lost-request" // a statement never arrives, and the caller gets no error
	LostAnswer  Fault = "lost-answer"  // it is applied, and the answer never comes
	LateRequest Fault = "late-request" // it arrives long after its caller has given up
	Broken      Fault = "broken"       // the connection breaks before it arrives, or after it was applied
	BadConn     Fault = "bad-conn"     // the same, and the driver calls the connection bad, so that database/sql tries again
	SlowCommit  Fault = "slow-commit"  // a COMMIT takes long, before or after it is applied
	Orphan      Fault = "orphan"       // the server notices late that a connection is gone: its transaction stays open for a while
	Silence     Fault = "silence"      // the network drops everything for a while
	Stall       Fault = "stall"        // the network delays everything for a while
	Away        Fault = "away"         // the database refuses all connections for a while
	Crash       Fault = "crash"        // a process dies and comes back
	Pause       Fault = "pause"        // a caller does nothing for a while, and does not look at its context
	Close       Fault = "close"        // a registry is closed at any moment, and another one opened
	Cancel      Fault = "cancel"       // a context ends at any moment
	Deletion    Fault = "deletion"     // another client deletes a row by force
)

// AllFaults are the faults that a correct library must endure.
var AllFaults = []Fault{
	Slow, LostRequest, LostAnswer, LateRequest, Broken, BadConn, SlowCommit, Orphan,
	Silence, Stall, Away, Crash, Pause, Close, Cancel, Deletion,
}

// delays are the faults of crowded worlds.
var delays = []Fault{Slow, SlowCommit, Stall, LateRequest, Pause, Cancel, Close}

// Failover is the fault that no lock endures: the database forgets its last commits, as an
// asynchronous replica does. It is the control group.
const Failover Fault = "failover"

// How long things last that go wrong.
const (
	// unansweredFor is after how long a driver that does not watch its context gives up a
	// silent connection, as TCP does after much longer.
	unansweredFor = 12 * time.Second
	longestFault  = 8 * time.Second // of those that last for a while
	longestOrphan = 3 * time.Second
	longestDelay  = 6 * time.Second // of one slow statement
)

// A fate is what becomes of one statement.
type fate struct {
	random        *source       // of the statement
	before, after time.Duration // how long the statement and the answer are under way
	fault         Fault         // or ""
	applied       bool          // for a fault that may come before or after the statement is applied
	orphanFor     time.Duration // how long the server keeps the connection if it breaks
}

// fate draws what becomes of a statement. The numbers are its own: two goroutines of a process may
// send one each in the same instant, in an order that the scheduler chooses.
func (l *link) fate(op operation, what string) fate {
	w := l.world
	r := newSource(&w.plan, fmt.Sprintln(l.process, time.Now().UnixNano(), op, holderForm.ReplaceAllString(what, "")))
	f := fate{random: r, before: r.latency(&w.plan), after: r.latency(&w.plan)}
	if w.isCalm() {
		return f
	}
	if w.plan.Can(Orphan) && r.chance(0.5) {
		f.orphanFor = r.upTo(longestOrphan)
	}
	if !r.chance(l.faultRate()) {
		return f
	}
	f.fault = r.pickFault(&w.plan, Slow, LostRequest, LostAnswer, LateRequest, Broken, BadConn, SlowCommit)
	if f.fault != "" {
		w.counted()
		l.inBurst.Store(w.plan.Bursts)
	}
	f.applied = r.chance(0.5)
	switch {
	case f.fault == Slow && f.applied, f.fault == SlowCommit && op == opCommit && f.applied:
		f.after += r.delay(&w.plan)
	case f.fault == Slow, f.fault == SlowCommit && op == opCommit, f.fault == LateRequest:
		f.before += r.delay(&w.plan)
	}
	return f
}

// faultRate returns the probability that the next statement meets a fault.
func (l *link) faultRate() float64 {
	if l.inBurst.Swap(false) {
		return max(l.world.plan.FaultRate, burstRate)
	}
	return l.world.plan.FaultRate
}
