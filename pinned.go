package sqllock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// pinnedAtOnce is how many rows that others have locked a heartbeat waits for at a time.
const pinnedAtOnce = 2

// pinnedRenewals are renewals of rows that the statement for all leases has passed over,
// because others had them locked. A refused attempt to acquire locks the row for a moment, and
// many processes that try leave few gaps. So each of these rows is renewed by a statement that
// waits for it in the row's queue, beside the heartbeat: the next renewal of all is not
// delayed.
type pinnedRenewals struct {
	// under way; only the heartbeat's goroutine uses the map
	renewals map[*hold]*pinnedRenewal
	// turns are for the statements that wait. Rows that a guarded transaction has locked,
	// maybe for long, have one of their own and do not keep the others waiting.
	turns, guardedTurns chan struct{}
}

// A pinnedRenewal is under way until the row is renewed or gone, or its lease has ended.
type pinnedRenewal struct {
	done chan struct{}
	mu   sync.Mutex
	err  error // of the last attempt
}

func newHeartbeat(r *Registry, ttl time.Duration) *heartbeat {
	return &heartbeat{registry: r, ttl: ttl, pinned: pinnedRenewals{
		renewals:     make(map[*hold]*pinnedRenewal),
		turns:        make(chan struct{}, pinnedAtOnce),
		guardedTurns: make(chan struct{}, 1),
	}}
}

// renewPinned begins the renewals of holds whose rows are pinned, those that end first at
// first, unless they are under way. It waits for them as long as a try may take, and returns
// an error for those that are not done then.
func (b *heartbeat) renewPinned(holds []*hold) error {
	if len(holds) == 0 && len(b.pinned.renewals) == 0 {
		return nil
	}
	slices.SortFunc(holds, func(x, y *hold) int { return x.deadline().Compare(y.deadline()) })
	for _, h := range holds {
		if b.pinned.renewals[h] == nil {
			renewal := &pinnedRenewal{done: make(chan struct{})}
			b.pinned.renewals[h] = renewal
			b.registry.beating.Go(func() { b.waitAndRenew(h, renewal) })
		}
	}
	limit, cancel := context.WithTimeout(b.registry.closing, b.ttl/beatTimeout)
	defer cancel()
	var err error
	waiting := 0
	for _, h := range holds {
		renewal := b.pinned.renewals[h]
		select {
		case <-renewal.done:
		case <-limit.Done():
		}
		if failed := renewal.failure(); failed != nil {
			err = errors.Join(err, failed)
		} else if !renewal.isDone() {
			waiting++
		}
	}
	for h, renewal := range b.pinned.renewals {
		if renewal.isDone() {
			delete(b.pinned.renewals, h)
		}
	}
	if waiting > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %d leases, to be renewed when that ends", ErrPinned, waiting))
	}
	return err
}

// waitAndRenew renews h, again and again until that succeeds or h is not to be renewed any
// more. The statement for all leases may be faster.
func (b *heartbeat) waitAndRenew(h *hold, renewal *pinnedRenewal) {
	defer close(renewal.done)
	end := h.deadline()
	isDue := func() bool { return h.mayBeRenewed() && !h.deadline().After(end) }
	for isDue() {
		if b.attemptPinned(h, renewal, isDue) || !sleep(b.registry.closing, b.ttl/beatRetry) {
			return
		}
	}
	renewal.failed(nil)
}

// attemptPinned waits for the row of h, until the lease ends at most, and renews it. It
// reports whether it is known what became of the row.
func (b *heartbeat) attemptPinned(h *hold, renewal *pinnedRenewal, isDue func() bool) bool {
	ctx, cancel := context.WithDeadline(b.registry.closing, h.deadline())
	defer cancel()
	turns := b.pinned.turns
	if h.isGuarded() {
		turns = b.pinned.guardedTurns
	}
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
		return false
	}
	if !isDue() {
		return false
	}
	sent := time.Now()
	renewed, err := b.registry.repository.renew(ctx, h.params(), 0, func() {
		b.abandon(b.settle([]*hold{h}, sent, []Renewal{Renewed}))
	})
	if renewal.failed(err); err != nil {
		return false
	}
	outcome := Lost
	if renewed {
		outcome = Renewed
	}
	b.settleNow([]*hold{h}, sent, []Renewal{outcome})
	return true
}

func (r *pinnedRenewal) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// failure returns the error of the last attempt, unless the row was pinned.
func (r *pinnedRenewal) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(r.err, ErrPinned) {
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

func (h *hold) isGuarded() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.guarded
}
