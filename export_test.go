package sqllock

import "time"

// RenewInBatches makes one statement renew n leases of r at most, instead of ten thousand.
func RenewInBatches(r *Registry, n int) { r.locks.renewal.batch = n }

// EndBeforeTimer has the time of a lease be over before its timer runs.
func EndBeforeTimer(l *Lease) {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	l.hold.term.end = time.Now()
}
