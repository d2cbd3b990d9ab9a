package sqllockotel

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sqllock/sqllock/observe"
)

// elections are those in which electors of this process take part.
type elections struct {
	terms metric.Int64Counter

	mu     sync.Mutex
	byRole map[string]*electors
}

// electors are those of one role.
type electors struct{ running, leading int }

func newElections(meter metric.Meter) (*elections, error) {
	c := &elections{byRole: make(map[string]*electors)}
	var failed error
	c.terms, failed = meter.Int64Counter("sqllock.leader.terms", metric.WithUnit("{term}"),
		metric.WithDescription("Terms in which this process has led."))
	_, err := meter.Int64ObservableGauge("sqllock.leader", metric.WithUnit("{elector}"), metric.WithInt64Callback(c.observe),
		metric.WithDescription("Whether this process leads, 1 or 0, while it takes part in the election."))
	return c, errors.Join(failed, err)
}

func ofElection(role string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("election", role))
}

func (c *elections) changed(ctx context.Context, e observe.Election) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.byRole[e.Role]
	if of == nil {
		of = new(electors)
		c.byRole[e.Role] = of
	}
	switch {
	case e.State == observe.ElectorLeader:
		of.leading++
		c.terms.Add(ctx, 1, ofElection(e.Role))
	case e.State == observe.ElectorRetired:
		of.running--
	case e.Holder != "": // a term is over
		of.leading--
	default:
		of.running++
		c.terms.Add(ctx, 0, ofElection(e.Role))
	}
	if of.running == 0 {
		delete(c.byRole, e.Role)
	}
}

// observe implements metric.Int64Callback.
func (c *elections) observe(_ context.Context, to metric.Int64Observer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for role, of := range c.byRole {
		to.Observe(int64(of.leading), ofElection(role))
	}
	return nil
}
