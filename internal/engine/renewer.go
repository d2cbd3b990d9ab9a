package engine

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/observe"
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

// longestWaitForRenewal limits how long a guard waits for the renewal that precedes it.
const longestWaitForRenewal = time.Second

// The renewal of a registry is what AutoRenew needs: a renewer for each time-to-live that
// there are leases of.
type renewal struct {
	background

	table     *locktable.Table
	maxHold   time.Duration // or 0
	observers observers     // of renewals
	batch     int           // how many leases one statement renews at most

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
		pinned: newPinnedRenewals(&r.background, h.ttl/renewalTimeout, h.ttl/renewalRetry, r.join),
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

	ttl     time.Duration
	holds   map[*hold]struct{} // guarded by renewal.mu
	pinned  pinnedRenewals
	overdue overdue
}

// run renews until there is nothing to renew, or the registry is closed.
func (r *renewer) run() {
	defer r.retire()
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

// retire has nothing join the renewer any more.
func (r *renewer) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.renewers[r.ttl] == r {
		delete(r.renewers, r.ttl)
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

// renew renews those of holds that may be renewed, and reports that. It returns whether
// the statements for all of them succeeded.
func (r *renewer) renew(holds []*hold) bool {
	holds = slices.DeleteFunc(holds, func(h *hold) bool { return !h.mayBeRenewed() })
	if len(holds) == 0 {
		return true
	}
	began, least := time.Now(), leastDeadline(holds)
	pinned, lost, failed := r.renewAll(holds)
	answered := time.Now()
	err := errors.Join(failed, r.pinned.renew(pinned))
	if err != nil && r.closing.Err() != nil {
		return false // Close explains it
	}
	if len(r.observers) > 0 {
		e := observe.Renewal{
			TTL: r.ttl, Leases: len(holds), Lost: lost, Pinned: len(pinned),
			Took: time.Since(began), Left: max(0, least.Sub(answered)), Err: err,
		}
		r.unlessClosed(func() { r.observers.renewal(r.closing, e) })
	}
	return failed == nil
}

// leastDeadline returns when the first of some leases ends.
func leastDeadline(holds []*hold) time.Time {
	least := holds[0].deadline()
	for _, h := range holds[1:] {
		if end := h.deadline(); end.Before(least) {
			least = end
		}
	}
	return least
}

// renewAll renews holds by one statement, or one for each part of them if there are very
// many: what one part has renewed does not depend on the next. It passes over rows that
// are pinned, and returns their holds, and how many leases were found lost.
func (r *renewer) renewAll(holds []*hold) (pinned []*hold, lost int, err error) {
	ctx, cancel := context.WithTimeout(r.closing, r.ttl/renewalTimeout)
	defer cancel()
	for part := range byRows(holds, r.batch) {
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
				_, late, _ := r.apply(part, sent, outcomes)
				r.deleteLate(late)
			}
		})
		if errors.Is(failed, bounded.ErrNoAnswer) {
			failed = r.table.Explain(ctx, "renew all", failed)
		}
		if failed != nil {
			err = errors.Join(err, failure.Of(failed, ""))
			continue
		}
		passedOver, late, gone := r.apply(part, sent, outcomes)
		pinned, lost = append(pinned, passedOver...), lost+gone
		if len(late) > 0 {
			r.tasks.Go(func() { r.deleteLate(late) }) // the renewer does not wait for it
		}
	}
	return pinned, lost, err
}

// byRows cuts holds into parts that have at most so many rows each, or one hold.
func byRows(holds []*hold, most int) iter.Seq[[]*hold] {
	return func(yield func([]*hold) bool) {
		first, rows := 0, 0
		for i, h := range holds {
			n := h.count()
			if rows+n > most && i > first {
				if !yield(holds[first:i]) {
					return
				}
				first, rows = i, 0
			}
			rows += n
		}
		if first < len(holds) {
			yield(holds[first:])
		}
	}
}

// apply has holds know what became of their rows. It returns those whose rows were passed
// over, those whose lease was over when the answer came: their rows last, and have no
// holder; and how many rows were gone. Those come last: their ends are reported, and an observer
// that takes its time must not keep the others from being renewed.
func (b *background) apply(holds []*hold, sent time.Time, outcomes []locktable.Outcome) (pinned, late []*hold, lost int) {
	var gone []*hold
	for i, h := range holds {
		switch outcomes[i] {
		case locktable.Renewed:
			if h.autoRenewed(sent) {
				late = append(late, h)
			}
		case locktable.Lost:
			gone = append(gone, h)
		case locktable.Pinned:
			pinned = append(pinned, h)
		}
	}
	for _, h := range gone {
		if h.endTaken(b) {
			lost++
		}
	}
	return pinned, late, lost
}

// overdue has the leases that are to be renewed between two transactions that pin their rows. The
// statement for all leases passes over a pinned row, and where one guarded transaction follows the
// other it would find the row pinned each time. So a guard first has its lease renewed, if that is
// overdue. Leases that come while such a statement is under way share the next one. It waits for no
// row, so it may also be sent while another transaction of the lease has the row pinned.
//
// Its fields are guarded by renewal.mu.
type overdue struct {
	next    *overdueRenewal // of those that wait, or nil
	sending bool
}

// An overdueRenewal is one statement for some leases.
type overdueRenewal struct {
	holds []*hold
	done  chan struct{} // closed once they are renewed, or passed over
}

// join adds h to the leases that the next statement renews, and returns what is closed after it. It
// returns nil if h is not renewed any more.
func (r *renewal) join(h *hold) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.renewers[h.ttl] // its goroutine is one of the tasks, and Close cannot have seen them all end
	if one == nil {
		return nil
	}
	if one.overdue.next == nil {
		one.overdue.next = &overdueRenewal{done: make(chan struct{})}
	}
	next := one.overdue.next
	if !slices.Contains(next.holds, h) {
		next.holds = append(next.holds, h)
	}
	if !one.overdue.sending {
		one.overdue.sending = true
		r.tasks.Go(one.renewAllOverdue)
	}
	return next.done
}

// renewAllOverdue renews the leases that have joined, until there are none.
func (r *renewer) renewAllOverdue() {
	for next := r.takeOverdue(); next != nil; next = r.takeOverdue() {
		holds := slices.DeleteFunc(next.holds, func(h *hold) bool { // the statement before may have done it
			return !h.isOverdue() || !h.mayBeRenewed()
		})
		if len(holds) > 0 {
			_, _, _ = r.renewAll(holds)
		}
		close(next.done)
	}
}

func (r *renewer) takeOverdue() *overdueRenewal {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.overdue.next
	r.overdue.next = nil
	r.overdue.sending = next != nil
	return next
}

// isOverdue reports whether h should have been renewed: the statement for all leases, and the try
// that follows one that fails, have come and gone.
func (h *hold) isOverdue() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	due := h.ttl/renewalsPerTTL + h.ttl/renewalRetry
	return time.Until(h.term.end) < h.ttl-margin(h.ttl)-due
}

// renewOverdue renews h if that is overdue and its row is not pinned. It returns a moment later in
// any case. The errors are those of the renewals of all leases, which report them.
func (r *renewal) renewOverdue(ctx context.Context, h *hold) {
	if !h.autoRenew || !h.isOverdue() || !h.mayBeRenewed() {
		return
	}
	done := r.join(h)
	if done == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, min(h.ttl/renewalRetry, longestWaitForRenewal))
	defer cancel()
	select {
	case <-done:
	case <-limited.Done():
	}
}
