package measure

import "sync"

// LeastLeft is how much of the shortest lease was left at the last renewal. It is 1 while there is
// no lease to renew: a value from before would stand for ever. The zero value is ready.
type LeastLeft struct {
	mu     sync.Mutex
	leases int
	ratio  float64 // if there are leases, and one was renewed
	known  bool
}

// Begin notes a lease that is to be renewed.
func (l *LeastLeft) Begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases++
}

// End notes the end of such a lease.
func (l *LeastLeft) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leases--; l.leases == 0 {
		l.known = false
	}
}

// Set notes a renewal.
func (l *LeastLeft) Set(ratio float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leases > 0 {
		l.ratio, l.known = ratio, true
	}
}

// Ratio returns the value.
func (l *LeastLeft) Ratio() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		return 1
	}
	return l.ratio
}
