package sqllock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/locktable"
)

// A renewal comes each third of the time-to-live and may take a quarter of it, because a
// connection that has gone dead does not say so. The next try, which gets another
// connection, comes soon after. So there are at least two tries before a lease ends. The
// statement itself has half of the time-to-live: an answer that comes after its try, on a
// slow server, still counts.
const (
	renewalsPerTTL   = 3
	renewalTimeout   = 4
	renewalStatement = 2
	renewalRetry     = 15
	renewalGrace     = 0 // an answer to the next try will do
)

// The renewal of a registry is what AutoRenew needs: a renewer for each time-to-live that
// there are leases of.
type renewal struct {
	background

	table     *locktable.Table
	maxHold   time.Duration // or 0
	onRenewal func(leases int, err error)
	batch     int // how many leases one statement renews at most

	mu       sync.Mutex
	renewers map[time.Duration]*renewer
}

// add has h renewed from now on. The registry must not be closed.
func (r *renewal) add(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.maxHold > 0 {
		h.renewUntil = h.acquired.Add(r.maxHold)
	}
	if one := r.renewers[h.ttl]; one != nil {
		one.holds[h] = struct{}{}
		return
	}
	one := &renewer{
		renewal: r, ttl: h.ttl, holds: map[*hold]struct{}{h: {}},
		pinned: newPinnedRenewals(&r.background, h.ttl/renewalTimeout, h.ttl/renewalRetry),
	}
	r.renewers[h.ttl] = one
	r.tasks.Go(one.run)
}

// remove has h not renewed any more.
func (r *renewal) remove(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.renewers[h.ttl]; one != nil {
		delete(one.holds, h)
	}
}

// A renewer renews the leases of one time-to-live, all of them by one statement. It has a
// goroutine for as long as there are such leases. It depends on no caller's context.
type renewer struct {
	*renewal

	ttl    time.Duration
	holds  map[*hold]struct{} // guarded by renewal.mu
	pinned pinnedRenewals
}

// run renews until there is nothing to renew, or the registry is closed.
func (r *renewer) run() {
	for pause := r.ttl / renewalsPerTTL; bounded.Sleep(r.closing, pause); {
		start := time.Now()
		holds := r.current()
		if len(holds) == 0 {
			return
		}
		pause = r.ttl / renewalRetry
		if r.renew(holds) {
			pause = max(r.ttl/renewalsPerTTL-time.Since(start), pause)
		}
	}
}

// current returns what is to be renewed. If that is nothing, the renewer has ended: the
// next lease starts another.
func (r *renewer) current() []*hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.holds) == 0 {
		delete(r.renewers, r.ttl)
		return nil
	}
	holds := make([]*hold, 0, len(r.holds))
	for h := range r.holds {
		holds = append(holds, h)
	}
	return holds
}

// renew renews those of holds that may be renewed, and calls OnRenewal. It reports whether
// the statements for all of them succeeded.
func (r *renewer) renew(holds []*hold) bool {
	holds = slices.DeleteFunc(holds, func(h *hold) bool { return !h.mayBeRenewed() })
	if len(holds) == 0 {
		return true
	}
	pinned, failed := r.renewAll(holds)
	err := errors.Join(failed, r.pinned.renew(pinned))
	if err != nil && r.closing.Err() != nil {
		return false // Close explains it
	}
	if r.onRenewal != nil {
		r.callOnRenewal(len(holds), err)
	}
	return failed == nil
}

// callOnRenewal calls the user's OnRenewal. It waits for it unless the registry is closed:
// OnRenewal may call Close, which waits for the renewer.
func (r *renewer) callOnRenewal(leases int, err error) {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		r.onRenewal(leases, err)
	}()
	select {
	case <-returned:
	case <-r.closing.Done():
	}
}

// renewAll renews holds by one statement, or one for each part of them if there are very
// many: what one part has renewed does not depend on the next. It passes over rows that
// are pinned, and returns their holds.
func (r *renewer) renewAll(holds []*hold) (pinned []*hold, err error) {
	ctx, cancel := context.WithTimeout(r.closing, r.ttl/renewalTimeout)
	defer cancel()
	for part := range slices.Chunk(holds, r.batch) {
		claims, sent := make([]locktable.Claim, len(part)), time.Now()
		for i, h := range part {
			claims[i] = h.claim()
		}
		outcomes, failed := bounded.Do(ctx, renewalGrace, func() ([]locktable.Outcome, error) { //nolint:contextcheck // it outlasts ctx
			ctx, cancel := context.WithTimeout(r.closing, r.ttl/renewalStatement)
			defer cancel()
			return r.table.RenewAll(ctx, claims)
		}, func(outcomes []locktable.Outcome, failed error) { // after ctx has ended
			if failed == nil {
				_, late := apply(part, sent, outcomes)
				r.deleteLate(late)
			}
		})
		if errors.Is(failed, bounded.ErrNoAnswer) {
			failed = r.table.Explain(ctx, "renew all", failed)
		}
		if failed != nil {
			err = errors.Join(err, failure(failed, ""))
			continue
		}
		passedOver, late := apply(part, sent, outcomes)
		pinned = append(pinned, passedOver...)
		if len(late) > 0 {
			r.tasks.Go(func() { r.deleteLate(late) }) // the renewer does not wait for it
		}
	}
	return pinned, err
}

// apply has holds know what became of their rows. It returns those whose rows were passed
// over, and those whose lease was over when the answer came: their rows last, and have no
// holder.
func apply(holds []*hold, sent time.Time, outcomes []locktable.Outcome) (pinned, late []*hold) {
	for i, h := range holds {
		switch outcomes[i] {
		case locktable.Renewed:
			if h.autoRenewed(sent) {
				late = append(late, h)
			}
		case locktable.Lost:
			h.rowIsGone()
		case locktable.Pinned:
			pinned = append(pinned, h)
		}
	}
	return pinned, late
}
