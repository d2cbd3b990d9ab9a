package simulation

import (
	"context"
	"sync"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/observe"
)

// A told is what the observer of a process was told of one call that locks.
type told struct {
	mu             sync.Mutex
	answers, ended int
	holds          bool // it was told of an acquisition
}

type toldKey struct{ of *process }

// observer checks that each call that locks has one answer, and that each acquisition, and nothing
// else, has one end after that.
func (p *process) observer() *observe.Observer {
	return &observe.Observer{
		Acquire: func(ctx context.Context, _ observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
			t := new(told)
			return context.WithValue(ctx, toldKey{p}, t), func(e observe.AcquireEnd) {
				t.mu.Lock()
				defer t.mu.Unlock()
				t.answers++
				t.holds = e.Err == nil && !e.Reentered
				if t.answers != 1 || t.ended != 0 || (e.Err == nil) != (e.Outcome == observe.OutcomeAcquired) || (e.Err == nil) != (e.Holder != "") {
					p.world.violated("observer", "%s: answer %d, %d ends: %+v", p.id, t.answers, t.ended, e)
				}
			}
		},
		LeaseEnd: func(ctx context.Context, e observe.LeaseEnd) {
			t, _ := ctx.Value(toldKey{p}).(*told)
			t.mu.Lock()
			defer t.mu.Unlock()
			t.ended++
			if e.Reason.Lost() && isOfSeats(e.Key) { // the call that has acquired it may go on without it
				p.world.witness.keeps(e.Holder)
			}
			if t.ended != 1 || !t.holds {
				p.world.violated("observer", "%s: end %d of a lease that was told: %v: %+v", p.id, t.ended, t.holds, e)
			}
		},
		Renewal: func(_ context.Context, e observe.Renewal) {
			p.expectSome("Renewal", e.Err, sqllock.ErrDatabase, sqllock.ErrPinned)
		},
	}
}
