package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/failure"
)

// pinnedAtOnce is how many pinned rows a renewer waits for at a time.
const pinnedAtOnce = 2

// pinnedRenewals renew rows that the statement for all leases has passed over, because
// other transactions had them locked. A refused attempt to acquire locks the row for a
// moment, and many processes that try leave few gaps. So each of these rows is renewed by a
// statement that waits for it in the row's queue. It runs beside the renewer and does not
// delay the next renewal of all leases.
type pinnedRenewals struct {
	background *background
	retry      time.Duration // until the next attempt

	// byHold has those under way. Only the goroutine of the renewer uses it.
	byHold map[*hold]*pinnedRenewal
	// limiter limits the statements that wait. Rows that a guarded transaction has locked,
	// maybe for long, have a limiter of their own and do not keep the others waiting. Those
	// that it has no place for are tried again by join, all together.
	limiter, guardedLimiter chan struct{}
	join                    func(*hold) <-chan struct{} // see renewers.join
}

// A pinnedRenewal is under way until the row is renewed or gone, or its lease has ended.
type pinnedRenewal struct {
	done chan struct{}
	mu   sync.Mutex
	err  error // of the last attempt
}

// renew begins the renewals of holds whose rows are pinned, unless they are under way,
// those that end first at first. It waits for them until a time, and returns an error for those that
// are not done then.
func (p *pinnedRenewals) renew(holds []*hold, until time.Time) error {
	if len(holds) == 0 && len(p.byHold) == 0 {
		return nil
	}
	slices.SortFunc(holds, func(x, y *hold) int { return x.lease.deadline().Compare(y.lease.deadline()) })
	for _, h := range holds {
		if p.byHold[h] == nil {
			renewal := &pinnedRenewal{done: make(chan struct{})}
			p.byHold[h] = renewal
			p.background.tasks.Go(func() { p.run(h, renewal) })
		}
	}
	limited, cancel := context.WithDeadline(p.background.closing, until)
	defer cancel()
	var err error
	waiting := 0
	for _, h := range holds {
		renewal := p.byHold[h]
		select {
		case <-renewal.done:
		case <-limited.Done():
		}
		if failed := renewal.lastError(); failed != nil {
			err = errors.Join(err, failed)
		} else if !renewal.isDone() {
			waiting++
		}
	}
	for h, renewal := range p.byHold {
		if renewal.isDone() {
			delete(p.byHold, h)
		}
	}
	if waiting > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %d leases, to be renewed when that ends", failure.ErrPinned, waiting))
	}
	return err
}

// run renews h, again and again until that succeeds or h is not to be renewed any more.
// The statement for all leases may be faster.
func (p *pinnedRenewals) run(h *hold, renewal *pinnedRenewal) {
	defer close(renewal.done)
	end := h.lease.deadline()
	isDue := func() bool { return h.mayBeRenewed() && !h.lease.deadline().After(end) }
	for isDue() {
		if p.renewOne(h, renewal, isDue) || !bounded.Sleep(p.background.closing, p.retry) {
			return
		}
	}
	renewal.setError(nil)
}

// renewOne waits for the row of h, until the lease ends at most, and renews it. It reports
// whether it is known what became of the row.
func (p *pinnedRenewals) renewOne(h *hold, renewal *pinnedRenewal, isDue func() bool) bool {
	ctx, cancel := context.WithDeadline(p.background.closing, h.lease.deadline())
	defer cancel()
	limiter := p.take(ctx, h)
	if limiter == nil {
		return false
	}
	defer func() { <-limiter }()
	if !isDue() {
		return false
	}
	sent := time.Now()
	renewed, err := h.locks.table.Renewals.Renew(ctx, h.claim(), 0, func() {
		if h.autoRenewed(sent) {
			h.cleanUp(p.background.closing)
		}
	})
	if renewal.setError(failure.Kinded(p.background.closing, failure.Of(err, h.key))); err != nil {
		return false
	}
	if !renewed {
		p.background.endTaken(h)
	} else if h.autoRenewed(sent) {
		p.background.tasks.Go(func() { h.cleanUp(p.background.closing) })
	}
	return true
}

// take waits for a place in the limiter of h, which it returns. It returns nil if it has got none:
// ctx has ended, or a guarded row has been tried together with others.
func (p *pinnedRenewals) take(ctx context.Context, h *hold) chan struct{} {
	limiter, tried := p.limiter, (<-chan struct{})(nil)
	if h.lease.isGuarded() {
		limiter = p.guardedLimiter
		if len(limiter) == cap(limiter) {
			tried = p.join(h)
		}
	}
	select {
	case limiter <- struct{}{}:
		return limiter
	case <-tried:
	case <-ctx.Done():
	}
	return nil
}

func (r *pinnedRenewal) setError(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// lastError returns the error of the last attempt, unless the row was pinned.
func (r *pinnedRenewal) lastError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(r.err, failure.ErrPinned) {
		return nil
	}
	return r.err
}

func (r *pinnedRenewal) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (l *lease) isGuarded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guarded
}
