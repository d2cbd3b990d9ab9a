//go:build linux

package checker

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sqllock/sqllock/reliability/clusters/history"
)

// An operation is a step of the lock of one key. Each step happens at one instant between its call
// and its return.
type operation struct {
	Kind  string // one of the constants below
	Token int64  // which names the lease
}

const (
	acquired  = "acquired"  // nobody held the lock, and the token is higher than all before
	renewed   = "renewed"   // the lease held the lock
	alive     = "alive"     // the same: its context had not ended
	committed = "committed" // no later lease has had the lock: it may be over
	ended     = "ended"     // the lease no longer holds the lock, if it did
)

// A lock is the state of a key.
type lock struct {
	Holder int64 // the token of the lease, or 0
	Last   int64 // the highest token
}

// model is a lock with leases. A lease ends by its release or, at an instant that nobody sees, by
// its end. So each lease has a step "ended", which may come at any time after it was last seen
// alive.
var model = porcupine.Model{
	Init: func() any { return lock{} },
	Step: func(state, input, _ any) (bool, any) {
		return step(state.(lock), input.(operation)) //nolint:forcetypeassert // this package makes them
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
	DescribeState:     func(state any) string { return fmt.Sprint(state) },
}

func step(l lock, o operation) (bool, any) {
	switch o.Kind {
	case acquired:
		return l.Holder == 0 && o.Token > l.Last, lock{o.Token, o.Token}
	case renewed, alive:
		return l.Holder == o.Token, l
	case committed:
		return l.Last == o.Token, l
	default:
		if l.Holder == o.Token {
			l.Holder = 0
		}
		return l.Last >= o.Token, l
	}
}

// decideLimit is for how long a history of one key may be searched for an order of its steps.
const decideLimit = 2 * time.Minute

// linear finds keys whose steps have no order that the model allows.
//
// Calls that were refused, or whose outcome is unknown, are no steps: they give nobody a lease. If
// such a call has taken the lock, nobody can hold it until its row has expired.
func (r *Report) linear(events []history.Event, leases []*lease) {
	steps := operations(events, leases)
	for _, key := range sortedKeys(steps) {
		switch porcupine.CheckOperationsTimeout(model, steps[key], decideLimit) {
		case porcupine.Ok:
		case porcupine.Illegal:
			r.Nonlinear = append(r.Nonlinear, fmt.Sprintf("the lock of %s is not linearizable: %d steps", key, len(steps[key])))
		default:
			r.Nonlinear = append(r.Nonlinear, fmt.Sprintf("the lock of %s: %d steps were not decided in %v", key, len(steps[key]), decideLimit))
		}
	}
}

// operations returns the steps of each key.
func operations(events []history.Event, leases []*lease) map[string][]porcupine.Operation {
	steps := make(map[string][]porcupine.Operation)
	add := func(key, kind string, token, call, ret int64) {
		steps[key] = append(steps[key], porcupine.Operation{Input: operation{kind, token}, Call: call, Return: ret})
	}
	byID := make(map[string]*lease)
	released := make(map[string]history.Event)
	for _, l := range leases {
		byID[l.id] = l
	}
	for _, e := range events {
		l := byID[e.Lease]
		if l == nil || e.Err != "" {
			continue
		}
		switch e.Op {
		case history.Renew:
			add(l.key, renewed, l.token, e.From, e.To)
		case history.Release:
			released[l.id] = e
		case history.Write:
			if e.Guarded {
				add(l.key, committed, l.token, e.From, e.To)
			}
		}
	}
	for _, l := range leases {
		add(l.key, acquired, l.token, l.asked, l.from)
		if l.last >= l.from {
			add(l.key, alive, l.token, l.last, l.last)
		}
		if e, ok := released[l.id]; ok {
			add(l.key, ended, l.token, e.From, e.To)
		} else {
			add(l.key, ended, l.token, max(l.asked, l.last), math.MaxInt64)
		}
	}
	return steps
}
