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
	"github.com/sqllock/sqllock/observe"
)

// pinnedAtOnce is how many pinned rows a renewer waits for at a time.
const pinnedAtOnce = 2

// pinnedRenewals renew rows that the statement for all leases has passed over, because
// other transactions had them locked. A refused attempt to acquire locks the row for a
// moment, and many processes that try leave few gaps. So each of these rows is renewed by a
// statement that waits for it in the row's queue. It runs beside the renewer and does not
// delay the next renewal of all leases.
type pinnedRenewals struct {
	background     *background
	timeout, retry time.Duration // of an attempt of the renewer, and until its next one

	// byHold has those under way. Only the goroutine of the renewer uses it.
	byHold map[*hold]*pinnedRenewal
	// limiter limits the statements that wait. Rows that a guarded transaction has locked,
	// maybe for long, have a limiter of their own and do not keep the others waiting. Those
	// that it has no place for are tried again by join, all together.
	limiter, guardedLimiter chan struct{}
	join                    func(*hold) <-chan struct{} // see renewal.join
}

// background is where the renewals of a registry run.
type background struct {
	closing context.Context // done once the registry is closed
	tasks   sync.WaitGroup
}

// unlessClosed calls fn, which calls observers. It waits for it unless the registry is closed: they
// may call Close, which waits for the tasks.
func (b *background) unlessClosed(fn func()) {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		fn()
	}()
	select {
	case <-returned:
	case <-b.closing.Done():
	}
}

// deleteLate deletes the rows of holds that were renewed when their leases were over.
func (b *background) deleteLate(holds []*hold) {
	var deleting sync.WaitGroup
	for _, h := range holds {
		deleting.Go(func() { h.cleanUp(b.closing) })
	}
	deleting.Wait()
}

// A pinnedRenewal is under way until the row is renewed or gone, or its lease has ended.
type pinnedRenewal struct {
	done chan struct{}
	mu   sync.Mutex
	err  error // of the last attempt
}

func newPinnedRenewals(b *background, timeout, retry time.Duration, join func(*hold) <-chan struct{}) pinnedRenewals {
	return pinnedRenewals{
		background:     b,
		timeout:        timeout,
		retry:          retry,
		byHold:         make(map[*hold]*pinnedRenewal),
		limiter:        make(chan struct{}, pinnedAtOnce),
		guardedLimiter: make(chan struct{}, 1),
		join:           join,
	}
}

// renew begins the renewals of holds whose rows are pinned, unless they are under way,
// those that end first at first. It waits for them for as long as an attempt may take, and
// returns an error for those that are not done then.
func (p *pinnedRenewals) renew(holds []*hold) error {
	if len(holds) == 0 && len(p.byHold) == 0 {
		return nil
	}
	slices.SortFunc(holds, func(x, y *hold) int { return x.deadline().Compare(y.deadline()) })
	for _, h := range holds {
		if p.byHold[h] == nil {
			renewal := &pinnedRenewal{done: make(chan struct{})}
			p.byHold[h] = renewal
			p.background.tasks.Go(func() { p.run(h, renewal) })
		}
	}
	limited, cancel := context.WithTimeout(p.background.closing, p.timeout)
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
	end := h.deadline()
	isDue := func() bool { return h.mayBeRenewed() && !h.deadline().After(end) }
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
	ctx, cancel := context.WithDeadline(p.background.closing, h.deadline())
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
	renewed, err := h.config.table.Renew(ctx, h.claim(), 0, func() {
		if h.autoRenewed(sent) {
			h.cleanUp(p.background.closing)
		}
	})
	if renewal.setError(failure.Kinded(p.background.closing, failure.Of(err, h.key))); err != nil {
		return false
	}
	if !renewed {
		h.endTaken(p.background)
	} else if h.autoRenewed(sent) {
		p.background.tasks.Go(func() { h.cleanUp(p.background.closing) })
	}
	return true
}

// take waits for a place in the limiter of h, which it returns. It returns nil if it has got none:
// ctx has ended, or a guarded row has been tried together with others.
func (p *pinnedRenewals) take(ctx context.Context, h *hold) chan struct{} {
	limiter, tried := p.limiter, (<-chan struct{})(nil)
	if h.isGuarded() {
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

// mayBeRenewed reports whether the registry may still renew h.
func (h *hold) mayBeRenewed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state == held && (h.renewUntil.IsZero() || h.term.end.Before(h.renewUntil))
}

func (h *hold) isGuarded() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.guarded
}

// autoRenewed extends the lease after its row was renewed by a statement that was sent at
// sent. It reports whether the answer came too late: then the row lasts and has no holder.
func (h *hold) autoRenewed(sent time.Time) (late bool) {
	h.extend(h.renewedEnd(sent, h.ttl), sent.Add(h.ttl))
	h.check() // the timer may come second
	return errors.Is(h.lost(), failure.ErrLockLost)
}

// endTaken ends h because its row was not there to be renewed. It returns false if h was
// unlocked, or over already, or if the registry was closed meanwhile.
func (h *hold) endTaken(b *background) (ended bool) {
	switch {
	case h.isUnlocked(): // its own Unlock was faster
		return false
	case h.observed == nil:
		return h.finish(observe.EndTaken, nil)
	}
	result := make(chan bool, 1)
	b.unlessClosed(func() { result <- h.finish(observe.EndTaken, nil) })
	select {
	case ended = <-result:
	default:
	}
	return ended
}
