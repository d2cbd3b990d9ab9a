package simulation

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
)

// slack is how long after its limit a call may return: the row of an unknown outcome is
// deleted within a second, and a driver that does not watch its context is left behind soon.
const slack = 1500 * time.Millisecond

// unlimited is the limit of a call that only its context ends.
const unlimited = 24 * time.Hour

// A call is a call of the library. It must return soon after its limit or the end of its context.
type call struct {
	process *process
	ctx     context.Context //nolint:containedctx // of the call
	name    string
	began   time.Time
	stop    func() bool

	mu    sync.Mutex
	ended time.Time // of its context, or zero
}

// begin notes that a call begins.
func (p *process) begin(ctx context.Context, name string) *call {
	c := &call{process: p, ctx: ctx, name: name, began: time.Now()}
	c.stop = context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = time.Now()
	})
	return c
}

// returned checks that the call has returned in time.
func (c *call) returned(limit time.Duration) {
	c.process.timely(c.name, c.began, c.within(limit)+slack)
}

// within returns limit, or how long the context of the call has lasted if that is shorter.
func (c *call) within(limit time.Duration) time.Duration {
	c.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.IsZero() {
		return limit
	}
	return min(limit, c.ended.Sub(c.began))
}

// timely checks that a call has not taken longer than limit.
func (p *process) timely(call string, began time.Time, limit time.Duration) {
	if took := time.Since(began); took > limit && !p.isDead() {
		p.world.violated("late return", "%s: %s took %v, limit %v", p.id, call, took, limit)
	}
}

// documented are the errors that a call may return.
var documented = []error{
	sqllock.ErrNotAcquired, sqllock.ErrLockLost, sqllock.ErrDatabase, sqllock.ErrPinned, sqllock.ErrInvalid,
	sqllock.ErrNotHeld, sqllock.ErrCapacity, sqllock.ErrClosed,
}

// expect checks that an error is of exactly one of the kinds that a call may return. ErrClosed is
// always one of them once Close was called.
func (p *process) expect(call string, err error, allowed ...error) {
	if kinds := p.kindsOf(call, err, allowed); len(kinds) > 1 {
		p.world.violated("error", "%s: %s: an error of several kinds, %v: %v", p.id, call, kinds, err)
	}
}

// expectSome is expect for a call that joins errors.
func (p *process) expectSome(call string, err error, allowed ...error) {
	p.kindsOf(call, err, allowed)
}

// kindsOf checks that an error is of kinds that are allowed, and returns them.
func (p *process) kindsOf(call string, err error, allowed []error) (kinds []error) {
	if err == nil || p.isDead() || p.world.isBroken() {
		return nil
	}
	if p.isClosed() {
		allowed = append(allowed, sqllock.ErrClosed)
	}
	for _, kind := range documented {
		if !errors.Is(err, kind) {
			continue
		}
		kinds = append(kinds, kind)
		if !slices.ContainsFunc(allowed, func(other error) bool { return errors.Is(kind, other) }) {
			p.world.violated("error", "%s: %s: an error that it must not return: %v", p.id, call, err)
		}
	}
	if len(kinds) == 0 {
		p.world.violated("error", "%s: %s: an error of no kind: %v", p.id, call, err)
	}
	return kinds
}
