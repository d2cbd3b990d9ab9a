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

// The renewal of a registry is what the automatic renewal needs: a renewer for each time-to-live that
// there are leases of.
type renewal struct {
	background

	table     *locktable.Table
	observers observers // of renewals
	batch     int       // how many leases one statement renews at most

	mu       sync.Mutex
	renewers map[time.Duration]*renewer
}

// add has h renewed from now on. The registry must not be closed.
func (r *renewal) add(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.renewers[h.ttl]; one != nil {
		one.holds[h] = time.Time{}
		return
	}
	one := &renewer{
		renewal: r, ttl: h.ttl, holds: map[*hold]time.Time{h: {}},
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

// A renewer renews the leases of one time-to-live: by one statement, or, if they are very many, by several,
// which are spread over a third of that time. Those that end first go first, so that a server that is slow for a
// while, or refuses one statement, costs no lease that another order would save. It has a goroutine for as long
// as there are such leases. It depends on no caller's context.
type renewer struct {
	*renewal

	ttl time.Duration
	// holds has the time before which a lease is not sent: the last statement for it may still be
	// answered, or has just failed. renewal.mu guards it.
	holds   map[*hold]time.Time
	pinned  pinnedRenewals
	overdue overdue
}

// A part is some of a renewer's leases, which one statement renews.
type part struct {
	holds []*hold
	of    int       // how many parts there are
	rest  time.Time // when the first of the other leases ends, or zero
}

// run renews until there is nothing to renew, or the registry is closed.
func (r *renewer) run() {
	defer r.retire()
	for pause := r.ttl / renewalsPerTTL; bounded.Sleep(r.closing, pause); {
		start := time.Now()
		next := r.next(start)
		if next.of == 0 {
			return
		}
		r.renew(next)
		pause = time.Until(r.wake(start, next))
		if next.of == 1 {
			pause = max(pause, r.ttl/renewalRetry)
		}
	}
}

// wake returns when the part after last is due, which was sent at sent.
func (r *renewer) wake(sent time.Time, last part) time.Time {
	each := r.ttl / renewalsPerTTL
	due := sent.Add(each / time.Duration(last.of))
	if third := last.rest.Add(each + margin(r.ttl) - r.ttl); !last.rest.IsZero() && third.Before(due) {
		due = third // the leases were not acquired, or renewed, one after the other
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, again := range r.holds {
		if !again.IsZero() && again.Before(due) {
			due = again
		}
	}
	return due
}

// retire has nothing join the renewer any more.
func (r *renewer) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.renewers[r.ttl] == r {
		delete(r.renewers, r.ttl)
	}
}

// next returns the part that is to be renewed, or the zero part if there are no leases. The renewer has
// ended then: the next lease starts another.
func (r *renewer) next(now time.Time) part {
	holds, rows := r.current(now)
	if rows == 0 {
		return part{}
	}
	holds = slices.DeleteFunc(holds, func(h *hold) bool { return !h.mayBeRenewed() })
	next := part{of: (rows + r.batch - 1) / r.batch}
	if next.of > 1 {
		ends := make(map[*hold]time.Time, len(holds))
		for _, h := range holds {
			ends[h] = h.deadline()
		}
		slices.SortFunc(holds, func(x, y *hold) int { return ends[x].Compare(ends[y]) })
	}
	for some := range byRows(holds, r.batch) {
		next.holds = some
		break
	}
	if len(next.holds) < len(holds) {
		next.rest = holds[len(next.holds)].deadline()
	}
	return next
}

// current returns the leases that may be sent, and how many rows all have.
func (r *renewer) current(now time.Time) (holds []*hold, rows int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.holds) == 0 {
		delete(r.renewers, r.ttl)
		return nil, 0
	}
	holds = make([]*hold, 0, len(r.holds))
	for h, again := range r.holds {
		rows += h.count()
		if !now.Before(again) {
			holds = append(holds, h)
		}
	}
	return holds, rows
}

// postpone has holds not be sent before a time.
func (r *renewer) postpone(holds []*hold, again time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range holds {
		if _, there := r.holds[h]; there {
			r.holds[h] = again
		}
	}
}

// renew renews those leases of a part that may be renewed, and reports that.
func (r *renewer) renew(p part) {
	if len(p.holds) == 0 {
		return
	}
	began, least := time.Now(), leastDeadline(p.holds)
	pinned, lost, failed := r.renewPart(p)
	answered := time.Now()
	for _, h := range pinned {
		h.noteFailure(failure.ErrPinned)
	}
	err := errors.Join(failed, r.pinned.renew(pinned))
	if err != nil && r.closing.Err() != nil {
		return // Close explains it
	}
	if len(r.observers) > 0 {
		e := observe.Renewal{
			TTL: r.ttl, Leases: len(p.holds), Lost: lost, Pinned: len(pinned),
			Took: time.Since(began), Left: max(0, least.Sub(answered)), Err: err,
		}
		r.unlessClosed(func() { r.observers.renewal(r.closing, e) })
	}
}

// renewPart is renewTogether for a part. If there are several, the others wait for its answer for a shorter
// time. An answer that comes later counts all the same, so the part is not sent again before.
func (r *renewer) renewPart(p part) (pinned []*hold, lost int, err error) {
	limit := r.ttl / renewalTimeout
	if p.of > 1 {
		limit = min(limit, max(r.ttl/renewalsPerTTL/time.Duration(p.of), 2*r.ttl/renewalRetry))
	}
	sent := time.Now()
	r.postpone(p.holds, sent.Add(r.ttl/renewalTimeout+r.ttl/renewalRetry))
	ctx, cancel := context.WithTimeout(r.closing, limit)
	defer cancel()
	pinned, lost, err = r.renewTogether(ctx, p.holds, func() { r.postpone(p.holds, time.Time{}) })
	if err != nil {
		for _, h := range p.holds {
			h.noteFailure(err)
		}
	}
	switch {
	case err == nil:
		r.postpone(p.holds, time.Time{})
	case ctx.Err() == nil:
		r.postpone(p.holds, time.Now().Add(r.ttl/renewalRetry))
	}
	return pinned, lost, err
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

// renewTogether renews holds by one statement. It passes over rows that are pinned, and returns their
// holds, and how many leases were found lost. It waits until ctx ends. onLate is called if the leases are renewed
// after that.
func (r *renewer) renewTogether(ctx context.Context, holds []*hold, onLate func()) (pinned []*hold, lost int, err error) {
	claims, sent := make([]locktable.Claim, len(holds)), time.Now()
	for i, h := range holds {
		claims[i] = h.claim()
	}
	outcomes, err := bounded.Do(ctx, renewalGrace, func() ([]locktable.Outcome, error) { //nolint:contextcheck // it outlasts ctx
		ctx, cancel := context.WithTimeout(r.closing, r.ttl/renewalStatement)
		defer cancel()
		return r.table.RenewAll(ctx, claims)
	}, func(outcomes []locktable.Outcome, failed error) { // after ctx has ended
		if failed == nil {
			_, late, _ := r.apply(holds, sent, outcomes)
			onLate()
			r.deleteLate(late)
		}
	})
	if errors.Is(err, bounded.ErrNoAnswer) {
		err = r.table.Explain(ctx, "renew all", err)
	}
	if err != nil {
		return nil, 0, failure.Of(err, "")
	}
	pinned, late, lost := r.apply(holds, sent, outcomes)
	if len(late) > 0 {
		r.tasks.Go(func() { r.deleteLate(late) }) // the renewer does not wait for it
	}
	return pinned, lost, nil
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
		r.renewOnce(holds)
		close(next.done)
	}
}

// renewOnce renews holds by one statement, or one for each part of them if there are very many.
func (r *renewer) renewOnce(holds []*hold) {
	ctx, cancel := context.WithTimeout(r.closing, r.ttl/renewalTimeout)
	defer cancel()
	for some := range byRows(holds, r.batch) {
		_, _, _ = r.renewTogether(ctx, some, func() {}) // the renewals of all leases report what is wrong
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
