//go:build linux

package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
)

// An operation is a step of the lock of one key. Each step happens at one instant between its call
// and its return.
type operation struct {
	Kind string // one of the constants below
	hold
}

const (
	acquired  = "acquired"  // there was room, and the token of one that holds all is higher than all before
	committed = "committed" // no later lease for which there is no room beside it has had the lock: it may be over
	ended     = "ended"     // the lease no longer holds the lock
)

// A lock is the state of a key.
type lock struct {
	Holders []hold
	// Latest are those that have had the lock, and after them none for which there is no room beside
	// them.
	Latest []hold
	Last   int64 // the highest token of those that held all
}

// model is a lock with leases.
var model = porcupine.Model{
	Init: func() any { return lock{} },
	Step: func(state, input, _ any) (bool, any) {
		return step(state.(lock), input.(operation)) //nolint:forcetypeassert // this package makes them
	},
	Equal: func(state1, state2 any) bool {
		a, b := state1.(lock), state2.(lock) //nolint:forcetypeassert // the same
		return a.Last == b.Last && slices.EqualFunc(a.Holders, b.Holders, hold.is) && slices.EqualFunc(a.Latest, b.Latest, hold.is)
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
	DescribeState:     func(state any) string { return fmt.Sprint(state) },
}

func (h hold) is(other hold) bool { return h.lease == other.lease }

func step(l lock, o operation) (bool, any) {
	switch o.Kind {
	case acquired:
		return l.hasRoom(o.hold) && (!o.IsWhole() || o.token > l.Last), l.with(o.hold)
	case committed:
		return slices.ContainsFunc(l.Latest, o.is), l
	default:
		holds := slices.ContainsFunc(l.Holders, o.is)
		l.Holders = slices.DeleteFunc(slices.Clone(l.Holders), o.is)
		return holds, l
	}
}

func (l lock) hasRoom(h hold) bool {
	units := h.Units
	for _, holder := range l.Holders {
		units += holder.Units
	}
	return units <= h.Of
}

// with adds a holder.
func (l lock) with(h hold) lock {
	l.Holders = insert(slices.Clone(l.Holders), h)
	l.Latest = insert(slices.DeleteFunc(slices.Clone(l.Latest), func(other hold) bool { return other.Units+h.Units > h.Of }), h)
	if h.IsWhole() {
		l.Last = h.token
	}
	return l
}

// insert keeps an order, so that the same leases make the same state.
func insert(holds []hold, h hold) []hold {
	at, _ := slices.BinarySearchFunc(holds, h, func(a, b hold) int { return cmp.Compare(a.id, b.id) })
	return slices.Insert(holds, at, h)
}

// decideLimit is for how long a history of one key may be searched for an order of its steps.
const decideLimit = 2 * time.Minute

// linear finds out whether the steps of a key have no order that the model allows.
//
// Calls that were refused, or whose outcome is unknown, are no steps: they give nobody a lease. If
// such a call has taken the lock, nobody can hold it until its row has expired.
func (r *Report) linear(key string, holds []hold) {
	var steps []porcupine.Operation
	for _, h := range holds {
		steps = append(steps, stepsOf(h)...)
	}
	switch porcupine.CheckOperationsTimeout(model, steps, decideLimit) {
	case porcupine.Ok:
	case porcupine.Illegal:
		r.Nonlinear = append(r.Nonlinear, fmt.Sprintf("the lock of %s is not linearizable: %d steps", key, len(steps)))
	default:
		r.Nonlinear = append(r.Nonlinear, fmt.Sprintf("the lock of %s: %d steps were not decided in %v", key, len(steps), decideLimit))
	}
}

// stepsOf returns the steps of a lease. Where it makes no difference they have one instant, so that there
// are not too many orders to try: the sooner a lease ends and a transaction commits, the better; and the
// later a lease begins, if its token is compared with no other.
func stepsOf(h hold) (steps []porcupine.Operation) {
	add := func(kind string, call, ret int64) {
		steps = append(steps, porcupine.Operation{Input: operation{kind, h}, Call: call, Return: ret})
	}
	held := h.last // for as long at least: alive, or with success at the begin of what needs the lock
	for _, e := range h.succeeded {
		switch {
		case e.Op == history.Renew, e.Op == history.Release:
			held = max(held, e.From)
		case e.Op == history.Write && e.Guarded && (e.Key == h.Key || !h.IsWhole()): // one for each key held wholly
			add(committed, e.From, e.From)
		}
	}
	switch {
	case held < h.from: // it may have ended before its caller knew of it
		add(acquired, h.asked, h.from)
		add(ended, h.asked, math.MaxInt64)
	case h.IsWhole():
		add(acquired, h.asked, h.from)
		add(ended, held, held)
	default:
		add(acquired, h.from, h.from)
		add(ended, held, held)
	}
	return steps
}
