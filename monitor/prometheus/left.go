package sqllockprom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// leastLeft is how much of the shortest lease was left at the last renewal. It is 1 while there is
// no lease to renew: a value from before would stand for ever.
type leastLeft struct {
	gauge prometheus.Gauge

	mu     sync.Mutex
	leases int
}

func newLeastLeft() *leastLeft {
	l := &leastLeft{gauge: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sqllock_renewal_left_ratio",
		Help: "How much of its time-to-live the shortest lease had left at the last renewal.",
	})}
	l.gauge.Set(1)
	return l
}

func (l *leastLeft) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases++
}

func (l *leastLeft) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leases--; l.leases == 0 {
		l.gauge.Set(1)
	}
}

func (l *leastLeft) set(ratio float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leases > 0 {
		l.gauge.Set(ratio)
	}
}
