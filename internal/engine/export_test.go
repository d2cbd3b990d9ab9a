package engine

import "time"

// RenewInBatches makes one statement renew n leases at most, instead of ten thousand.
func RenewInBatches(s *Locks, n int) { s.renewal.batch = n }

// EndBeforeTimer has the time of a lease be over before its timer runs.
func EndBeforeTimer(u *Use) {
	u.hold.mu.Lock()
	defer u.hold.mu.Unlock()
	u.hold.term.end = time.Now()
}

// BeforeEnd has f called when the lease is over, before its context is ended.
func BeforeEnd(u *Use, f func()) {
	u.hold.mu.Lock()
	defer u.hold.mu.Unlock()
	u.hold.users = append([]user{&beforeEnd{f}}, u.hold.users...)
}

type beforeEnd struct{ f func() }

func (b *beforeEnd) end(error) { b.f() }
