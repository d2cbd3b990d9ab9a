package sqllock

import "time"

// RenewInParts has one statement renew n leases of r at most, instead of ten thousand.
func RenewInParts(r *Registry, n int) { r.renewalPart = n }

// EndSilently has the time of a lease be over before its timer runs.
func EndSilently(l *Lease) {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	l.hold.end = time.Now()
}
