package engine

import (
	"context"
	"slices"
	"time"
)

// longestWaitForRenewal limits how long a guard waits for the renewal that precedes it.
const longestWaitForRenewal = time.Second

// overdue are the leases that are to be renewed between two transactions that pin their rows. The
// statement for all leases passes over a pinned row, and where one guarded transaction follows the
// other it would find the row pinned each time. So a guard first has its lease renewed, if that is
// overdue. Leases that come while such a statement is under way share the next one. It waits for no
// row, so it may also be sent while another transaction of the lease has the row pinned.
//
// mu of [Locks] guards its fields.
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
func (r *renewers) join(h *hold) <-chan struct{} {
	r.locks.mu.Lock()
	defer r.locks.mu.Unlock()
	one := r.byTTL[h.ttl] // its goroutine is one of the tasks, and Close cannot have seen them all end
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
		r.background.tasks.Go(one.renewAllOverdue)
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
	ctx, cancel := context.WithTimeout(r.background.closing, r.ttl/timeoutsPerTTL)
	defer cancel()
	for some := range byRows(holds, r.all.batch) {
		_, _, _ = r.renewTogether(ctx, some, func() {}) // the renewals of all leases report what is wrong
	}
}

func (r *renewer) takeOverdue() *overdueRenewal {
	r.all.locks.mu.Lock()
	defer r.all.locks.mu.Unlock()
	next := r.overdue.next
	r.overdue.next = nil
	r.overdue.sending = next != nil
	return next
}

// isOverdue reports whether h should have been renewed: the statement for all leases, and the try
// that follows one that fails, have come and gone.
func (h *hold) isOverdue() bool {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	due := h.ttl/renewalsPerTTL + h.ttl/retriesPerTTL
	return time.Until(h.lease.end) < h.ttl-Margin(h.ttl)-due
}

// renewOverdue renews h if that is overdue and its row is not pinned. It returns a moment later in
// any case. The errors are those of the renewals of all leases, which report them.
func (r *renewers) renewOverdue(ctx context.Context, h *hold) {
	if !h.autoRenew || !h.isOverdue() || !h.mayBeRenewed() {
		return
	}
	done := r.join(h)
	if done == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, min(h.ttl/retriesPerTTL, longestWaitForRenewal))
	defer cancel()
	select {
	case <-done:
	case <-limited.Done():
	}
}
