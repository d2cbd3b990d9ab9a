package sqllockprom

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sqllock/sqllock/observe"
)

// elections are those in which electors of this process take part.
type elections struct {
	leader *prometheus.GaugeVec
	terms  *prometheus.CounterVec

	mu     sync.Mutex
	byRole map[string]*electors
}

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
	of := c.byRole[e.Role]
	if of == nil {
		of = new(electors)
		c.byRole[e.Role] = of
	}
	switch {
	case e.State == observe.ElectorLeader:
		of.leading++
		c.terms.WithLabelValues(e.Role).Inc()
	case e.State == observe.ElectorRetired:
		of.running--
	case e.Holder != "": // a term is over
		of.leading--
	default:
		of.running++
		c.terms.WithLabelValues(e.Role)
	}
	if of.running == 0 {
		delete(c.byRole, e.Role)
		c.leader.DeleteLabelValues(e.Role)
		return
	}
	c.leader.WithLabelValues(e.Role).Set(float64(of.leading))
}
