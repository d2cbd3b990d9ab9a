package sqllockotel

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sqllock/sqllock/observe"
)

// elections are those in which electors of this process take part.
type elections struct {
	mu     sync.Mutex
	byRole map[string]*electors
	ended  []string // the roles that have no elector, the last one at the end
}

// endedRoles is how many roles without an elector keep their terms: those of the last ones are to be read,
// and those of all that ever were would not end.
const endedRoles = 100

// electors are those of one role.
type electors struct {
	running, leading int
	terms            int64
}

func newElections(meter metric.Meter) (*elections, error) {
	c := &elections{byRole: make(map[string]*electors)}
	_, failed := meter.Int64ObservableCounter("sqllock.leader.terms", metric.WithUnit("{term}"), metric.WithInt64Callback(c.observeTerms),
		metric.WithDescription("Terms in which this process has led."))
	_, err := meter.Int64ObservableGauge("sqllock.leader", metric.WithUnit("{elector}"), metric.WithInt64Callback(c.observe),
		metric.WithDescription("Whether this process leads, 1 or 0, while it takes part in the election."))
	return c, errors.Join(failed, err)
}

func ofElection(role string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("election", role))
}

func (c *elections) changed(_ context.Context, e observe.Election) {
	c.mu.Lock()
	defer c.mu.Unlock()
	role := text(e.Role)
	of := c.byRole[role]
	if of == nil {
		of = new(electors)
		c.byRole[role] = of
	}
	if of.running == 0 {
		c.ended = slices.DeleteFunc(c.ended, func(other string) bool { return other == role })
	}
	switch {
	case e.State == observe.ElectorLeader:
		of.leading++
		of.terms++
	case e.State == observe.ElectorRetired:
		of.running--
	case e.Holder != "": // a term is over
		of.leading--
	default:
		of.running++
	}
	if of.running > 0 {
		return
	}
	if c.ended = append(c.ended, role); len(c.ended) > endedRoles {
		delete(c.byRole, c.ended[0])
		c.ended = slices.Clone(c.ended[1:])
	}
}

// observe implements metric.Int64Callback.
func (c *elections) observe(_ context.Context, to metric.Int64Observer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for role, of := range c.byRole {
		if of.running > 0 {
			to.Observe(int64(of.leading), ofElection(role))
		}
	}
	return nil
}

// observeTerms implements metric.Int64Callback.
func (c *elections) observeTerms(_ context.Context, to metric.Int64Observer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for role, of := range c.byRole {
		to.Observe(of.terms, ofElection(role))
	}
	return nil
}
