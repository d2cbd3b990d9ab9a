package sqllockprom

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sqllock/sqllock/observe"
)

// elections are those in which electors of this process take part.
type elections struct {
	leader *prometheus.GaugeVec
	terms  *prometheus.CounterVec

	mu     sync.Mutex
	byRole map[string]*electors // while there are any
	ended  []string             // the roles whose terms stay although they have none, the last one at the end
}

// endedRoles is how many roles without an elector keep their terms: those of the last ones are to be scraped,
// and those of all that ever were would not end.
const endedRoles = 100

// electors are those of one role.
type electors struct{ running, leading int }

func newElections() *elections {
	return &elections{
		leader: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sqllock_leader",
			Help: "Whether this process leads, 1 or 0, while it takes part in the election.",
		}, []string{"election"}),
		terms: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sqllock_leader_terms_total",
			Help: "Terms in which this process has led.",
		}, []string{"election"}),
		byRole: make(map[string]*electors),
	}
}

func (c *elections) changed(_ context.Context, e observe.Election) {
	c.mu.Lock()
	defer c.mu.Unlock()
	role := text(e.Role)
	of := c.byRole[role]
	if of == nil {
		of = new(electors)
		c.byRole[role] = of
		c.ended = slices.DeleteFunc(c.ended, func(other string) bool { return other == role })
	}
	switch {
	case e.State == observe.ElectorLeader:
		of.leading++
		c.terms.WithLabelValues(role).Inc()
	case e.State == observe.ElectorRetired:
		of.running--
	case e.Holder != "": // a term is over
		of.leading--
	default:
		of.running++
		c.terms.WithLabelValues(role)
	}
	if of.running == 0 {
		delete(c.byRole, role)
		c.leader.DeleteLabelValues(role)
		if c.ended = append(c.ended, role); len(c.ended) > endedRoles {
			c.terms.DeleteLabelValues(c.ended[0])
			c.ended = slices.Clone(c.ended[1:])
		}
		return
	}
	c.leader.WithLabelValues(role).Set(float64(of.leading))
}
