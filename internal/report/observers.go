package report

import (
	"context"
	"errors"
	"slices"

	"github.com/sqllock/sqllock/observe"
)

// Observers are the observers of a registry.
type Observers []*observe.Observer

// having returns those that a function selects. Nil ones are left out.
func (o Observers) having(some func(*observe.Observer) bool) Observers {
	return slices.DeleteFunc(slices.Clone(o), func(one *observe.Observer) bool { return one == nil || !some(one) })
}

// OfLocks returns those that are told of acquisitions and of the ends of leases.
func (o Observers) OfLocks() Observers {
	return o.having(func(one *observe.Observer) bool { return one.Acquire != nil || one.LeaseEnd != nil })
}

// OfRenewals returns those that are told of renewals.
func (o Observers) OfRenewals() Observers {
	return o.having(func(one *observe.Observer) bool { return one.Renewal != nil })
}

// ForEach calls a function with each of all, also with those after one for which it panics.
func ForEach[T any](all []T, call func(T)) {
	if len(all) == 0 {
		return
	}
	defer ForEach(all[1:], call)
	call(all[0])
}

// errObserver is the answer that observers have if another one has panicked in Acquire.
var errObserver = errors.New("sqllock: an observer has panicked")

// acquire reports that a caller asks for a lock. It returns the context of the last observer, and
// what to call with the answer: the observer that was told last is the first to have it.
func (o Observers) acquire(ctx context.Context, e observe.AcquireStart) (_ context.Context, done []func(observe.AcquireEnd)) {
	told := false
	defer func() {
		slices.Reverse(done)
		if !told {
			ForEach(done, func(end func(observe.AcquireEnd)) {
				end(observe.AcquireEnd{AcquireStart: e, Outcome: observe.OutcomeError, Err: errObserver})
			})
		}
	}()
	for _, one := range o {
		if one.Acquire == nil {
			continue
		}
		inner, end := one.Acquire(ctx, e)
		if inner != nil {
			ctx = inner
		}
		if end != nil {
			done = append(done, end)
		}
	}
	told = true
	return ctx, done
}

func (o Observers) leaseEnd(ctx context.Context, e observe.LeaseEnd) {
	ForEach(o, func(one *observe.Observer) {
		if one.LeaseEnd != nil {
			one.LeaseEnd(ctx, e)
		}
	})
}

// Renewal reports a renewal to observers that all have a function for it.
func (o Observers) Renewal(ctx context.Context, e observe.Renewal) {
	for _, one := range o {
		one.Renewal(ctx, e)
	}
}
