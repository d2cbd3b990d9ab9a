package sqllock

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/observe"
)

// lock acquires for ctx, the caller's context.
func (s *locks) lock(ctx context.Context, r request, wait time.Duration) (*Lease, error) {
	if err := s.check(r); err != nil {
		return nil, err
	}
	if len(s.observers) == 0 {
		return s.enter(ctx, r, wait, nil)
	}
	return s.lockObserved(ctx, r, wait)
}

// lockObserved is lock for a registry with observers.
func (s *locks) lockObserved(ctx context.Context, r request, wait time.Duration) (lease *Lease, err error) {
	o := s.observers.observe(ctx, observe.AcquireStart{Key: r.key, TTL: r.ttl, Wait: wait, AutoRenew: r.autoRenew})
	lease, err = s.enter(o.ctx, r, wait, o) //nolint:contextcheck // it is made from ctx
	e := o.answer(err)
	if lease != nil {
		e.Holder, e.Token, e.Reentered = lease.Holder(), lease.Token(), lease.hold.observed != o
	}
	switch {
	case e.Reentered:
		e.Queued = 0
	case lease != nil:
		e.HandedOn = lease.hold.wasHandedOver()
	}
	reported := false
	defer func() {
		if !reported && lease != nil { // an observer has panicked: the caller does not get the lease
			_ = lease.Unlock(ctx)
		}
	}()
	o.reportAnswer(e)
	reported = true
	return lease, err
}
