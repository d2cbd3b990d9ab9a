package leader

import (
	"context"
	"fmt"
	"time"
)

// Resign ends the term of this elector: the context of the function ends with cause [ErrResigned]. Resign waits until
// the function has returned and the lease is released, and returns the error of the release. The elector then leaves
// the role to others, for [Options].SitOut at most.
//
// The function itself may resign with its own context, or one that is made from it. Resign then returns nil without
// waiting. (To return nil from the function does the same.) Hooks and observers may resign with any context.
//
// If ctx ends first, Resign returns its cause; the term ends all the same. If the elector does not lead, the error is
// an [ErrNotLeader].
func (e *Elector) Resign(ctx context.Context) error {
	t, seen := e.view.current()
	if t == nil {
		return &NotLeaderError{e.role, seen}
	}
	t.resigned()
	t.ctx.end(ErrResigned)
	if ctx.Value(termKey{e.view}) == t {
		return nil // the function calls: it cannot wait for itself
	}
	select {
	case <-t.released:
		return t.result
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// IsLeader returns nil if this elector leads, and else a [*NotLeaderError]. It never asks the database, so it may be
// called for every request. It does not use ctx: with it, an Elector is an Elector of gocron.
//
// IsLeader compares the time when it is called. It returns an error as soon as the context of the function has ended,
// also while the function still runs.
func (e *Elector) IsLeader(context.Context) error {
	t, seen := e.view.current()
	if t.leads() {
		return nil
	}
	return &NotLeaderError{e.role, seen}
}

// Check returns an [ErrStuck] if the function still runs although its lease ended longer than tolerance ago. Another
// elector may lead by then, so a process for which Check returns an error should be ended. It is for a health check,
// and never asks the database.
//
// A function that takes long to return after [Elector.Resign] or the end of Run's context is not stuck, because its
// lease is still renewed.
func (e *Elector) Check(tolerance time.Duration) error {
	t, _ := e.view.current()
	if t == nil {
		return nil
	}
	if since := t.lostFor(); since > tolerance {
		return fmt.Errorf("%w: %q, for %v", ErrStuck, e.role, since.Round(time.Millisecond))
	}
	return nil
}

// Leader reads who leads. Leader.Me is true if it is this elector.
//
// The errors are [sqllock.ErrDatabase], or that of ctx.
func (e *Elector) Leader(ctx context.Context) (Leader, error) {
	t, _ := e.view.current()
	leader, err := Current(ctx, e.registry.Repository(), e.role)
	leader.Me = t.leads() && leader.Holder == t.lease.Holder()
	return leader, err
}
