package engine

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/waits"
	"github.com/sqllock/sqllock/observe"
)

// Lock acquires what r asks for, for a caller with ctx. wait limits the time until then: 0 is a single try, and
// less than 0 no limit. Unless it returns an error, u is a use of the lock from then on, and its context is made
// from ctx. face is what u.Face returns.
func (s *Locks) Lock(ctx context.Context, r Request, wait time.Duration, u *Use, face any) error {
	if err := s.Check(r); err != nil {
		return err
	}
	u.face = face
	if len(s.observers) == 0 {
		return s.enter(ctx, r, wait, u, nil)
	}
	return s.lockObserved(ctx, r, wait, u)
}

// lockObserved is Lock for a registry with observers.
func (s *Locks) lockObserved(ctx context.Context, r Request, wait time.Duration, u *Use) (err error) {
	o := s.observers.observe(ctx, observe.AcquireStart{Key: r.key, TTL: r.ttl, Wait: wait, AutoRenew: r.autoRenew, StandsBy: waits.StandsBy(ctx, r.key)})
	err = s.enter(o.ctx, r, wait, u, o) //nolint:contextcheck // it is made from ctx
	e := o.answer(err)
	if err == nil {
		e.Holder, e.Token, _ = u.Term()
		e.Reentered = u.hold.observed != o
	}
	switch {
	case e.Reentered:
		e.Queued = 0
	case err == nil:
		e.HandedOn = u.hold.wasHandedOver()
	}
	reported := false
	defer func() {
		if !reported && err == nil { // an observer has panicked: the caller does not get the lease
			_ = u.Unlock(ctx, time.Time{})
		}
	}()
	o.reportAnswer(e)
	reported = true
	return err
}
