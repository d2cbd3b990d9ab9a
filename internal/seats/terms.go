package seats

import (
	"time"

	"github.com/sqllock/sqllock"
)

// Terms are the settings of leases that a handle may change. The zero Terms are the registry's.
type Terms struct {
	ttl       *time.Duration
	autoRenew *bool
}

// WithTTL returns terms with another time-to-live.
func (t Terms) WithTTL(ttl time.Duration) Terms {
	t.ttl = &ttl
	return t
}

// WithAutoRenew returns terms under which leases are renewed automatically, or not.
func (t Terms) WithAutoRenew(on bool) Terms {
	t.autoRenew = &on
	return t
}

// Apply returns a handle of lock with these terms.
func (t Terms) Apply(lock *sqllock.JdbcLock) *sqllock.JdbcLock {
	if t.ttl != nil {
		lock = lock.WithTTL(*t.ttl)
	}
	if t.autoRenew != nil {
		lock = lock.WithAutoRenew(*t.autoRenew)
	}
	return lock
}

// CheckTerms returns the error that locking a seat with these terms would return: an
// [sqllock.ErrInvalid], or that of [sqllock.Registry.Obtain]. A call that finds no seat free
// locks none.
func (s *Set) CheckTerms(t Terms) error {
	if err := s.CheckOpen(); err != nil || t.ttl == nil {
		return err
	}
	return s.locks.Check(s.request.WithTTL(*t.ttl))
}
