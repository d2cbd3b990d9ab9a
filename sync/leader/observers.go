package leader

import (
	"context"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/observe"
)

// observers tell the observers of a registry of the state of an elector.
type observers struct {
	role string
	each []func(context.Context, observe.Election)
}

func observersOf(registry *sqllock.Registry, role string) observers {
	o := observers{role: role}
	for _, one := range registry.Observers() {
		if one.Election != nil {
			o.each = append(o.each, one.Election)
		}
	}
	return o
}

func (o *observers) report(ctx context.Context, e observe.Election) {
	e.Role = o.role
	for _, one := range o.each {
		one(ctx, e)
	}
}

func (o *observers) candidate(ctx context.Context) {
	o.report(ctx, observe.Election{State: observe.ElectorCandidate})
}

func (o *observers) retired(ctx context.Context) {
	o.report(ctx, observe.Election{State: observe.ElectorRetired})
}
