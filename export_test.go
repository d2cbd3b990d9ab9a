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

// BeforeEnd has f called when the lease is over, before its context is ended.
func BeforeEnd(l *Lease, f func()) {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	l.hold.users = append([]user{&beforeEnd{f}}, l.hold.users...)
}

type beforeEnd struct{ f func() }

func (b *beforeEnd) end(error) { b.f() }
