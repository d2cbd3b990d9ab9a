package engine

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/observe"
)

// The automatic renewal, from its goroutine to the rows and back:
//
//	renewer.run            each third of the time-to-live, until there are no leases
//	renewer.next           which leases: a part of them, those that end first
//	renewer.renew          the part, then its pinned rows, and the report
//	renewer.renewPart      how long to wait, and what follows a failure
//	renewer.renewTogether  one statement for all: renewals.RenewAll, in package locktable; also of a late answer
//	renewer.apply          what became of each row: hold.autoRenewed, background.endTaken, or
//	pinnedRenewals.renew   a statement for each pinned row
//
// A guard renews an overdue lease before it pins the row: renewers.renewOverdue in overdue.go.

// The parts of a time-to-live. A renewal comes each third of it and may take a quarter, because a
// connection that has gone dead does not say so. The next try, which gets another
// connection, comes soon after. So there are at least two tries before a lease ends. The
// statement itself has half of the time-to-live: an answer that comes after its try, on a
// slow server, still counts.
const (
	renewalsPerTTL   = 3
	timeoutsPerTTL   = 4
	statementsPerTTL = 2
	retriesPerTTL    = 15
)

// renewalGrace is how long a renewal is waited for after its limit: an answer to the next try will do.
const renewalGrace = 0

// renewers are those of a registry: one for each time-to-live that there are leases of.
type renewers struct {
	locks      *Locks
	background *background                // of locks
	observers  report.Observers           // of renewals
	batch      int                        // how many leases one statement renews at most
	byTTL      map[time.Duration]*renewer // mu of locks guards it
}

// startLocked starts the renewer of a time-to-live, of which there was no lease. The registry must not be closed.
func (r *renewers) startLocked(ttl time.Duration) *renewer {
	one := &renewer{
		all: r, background: r.background, ttl: ttl, holds: make(map[*hold]struct{}),
		pinned: pinnedRenewals{
			background: r.background, retry: ttl / retriesPerTTL, join: r.join,
			byHold: make(map[*hold]*pinnedRenewal), limiter: make(chan struct{}, pinnedAtOnce), guardedLimiter: make(chan struct{}, 1),
		},
	}
	r.byTTL[ttl] = one
	r.background.tasks.Go(one.run)
	return one
}

// A renewer renews the leases of one time-to-live: by one statement, or, if they are very many, by several,
// which are spread over a third of that time. Those that end first go first, so that a server that is slow for a
// while, or refuses one statement, costs no lease that another order would save. It has a goroutine for as long
// as there are such leases. It depends on no caller's context.
type renewer struct {
	all        *renewers
	background *background // of all
	ttl        time.Duration
	holds      map[*hold]struct{} // mu of locks guards it
	pinned     pinnedRenewals
	overdue    overdue
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
	for pause := r.ttl / renewalsPerTTL; bounded.Sleep(r.background.closing, pause); {
		start := time.Now()
		next := r.next(start)
		if next.of == 0 {
			return
		}
		r.renew(next)
		pause = time.Until(r.wake(start, next))
		if next.of == 1 {
			pause = max(pause, r.ttl/retriesPerTTL)
		}
	}
}

// wake returns when the part after last is due, which was sent at sent.
func (r *renewer) wake(sent time.Time, last part) time.Time {
	each := r.ttl / renewalsPerTTL
	due := sent.Add(each / time.Duration(last.of))
	if third := last.rest.Add(each + Margin(r.ttl) - r.ttl); !last.rest.IsZero() && third.Before(due) {
		due = third // the leases were not acquired, or renewed, one after the other
	}
	r.all.locks.mu.Lock()
	holds := r.leasesLocked()
	r.all.locks.mu.Unlock()
	for _, h := range holds {
		if again := h.lease.notBefore(); !again.IsZero() && again.Before(due) && h.mayBeRenewed() {
			due = again
		}
	}
	return due
}

// retire removes the renewer: the next lease starts another.
func (r *renewer) retire() {
	r.all.locks.mu.Lock()
	defer r.all.locks.mu.Unlock()
	if r.all.byTTL[r.ttl] == r {
		delete(r.all.byTTL, r.ttl)
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
	next := part{of: (rows + r.all.batch - 1) / r.all.batch}
	if next.of > 1 {
		ends := make(map[*hold]time.Time, len(holds))
		for _, h := range holds {
			ends[h] = h.lease.deadline()
		}
		slices.SortFunc(holds, func(x, y *hold) int { return ends[x].Compare(ends[y]) })
	}
	for some := range byRows(holds, r.all.batch) {
		next.holds = some
		break
	}
	if len(next.holds) < len(holds) {
		next.rest = holds[len(next.holds)].lease.deadline()
	}
	return next
}

// current returns the leases that may be sent, and how many rows all have.
func (r *renewer) current(now time.Time) (holds []*hold, rows int) {
	r.all.locks.mu.Lock()
	holds = r.leasesLocked()
	if len(holds) == 0 {
		delete(r.all.byTTL, r.ttl)
	}
	r.all.locks.mu.Unlock()
	for _, h := range holds {
		rows += len(h.locals)
	}
	return slices.DeleteFunc(holds, func(h *hold) bool { return now.Before(h.lease.notBefore()) }), rows
}

// leasesLocked returns all leases of r.
func (r *renewer) leasesLocked() (holds []*hold) {
	return slices.Collect(maps.Keys(r.holds))
}

// postpone leaves holds out until a time.
func postpone(holds []*hold, again time.Time) {
	for _, h := range holds {
		h.lease.postpone(again)
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
		h.lease.noteFailure(failure.ErrPinned)
	}
	until := answered.Add(r.ttl / timeoutsPerTTL)
	if each := r.ttl / renewalsPerTTL; p.of > 1 {
		// Pinned rows have their own renewals. They end first, and would be the next part again, while the others wait.
		postpone(pinned, began.Add(each))
		share := each / time.Duration(p.of)
		until = began.Add(share)
		if least := answered.Add(share / 2); least.After(until) {
			until = least // one that is pinned for a moment is no failure
		}
	}
	err := errors.Join(failed, r.pinned.renew(pinned, until))
	if err != nil && r.background.closing.Err() != nil {
		return // Close explains it
	}
	if len(r.all.observers) > 0 {
		e := observe.Renewal{
			TTL: r.ttl, Leases: len(p.holds), Lost: lost, Pinned: len(pinned),
			Took: time.Since(began), Left: max(0, least.Sub(answered)), Err: err,
		}
		r.background.unlessClosed(func() { r.all.observers.Renewal(r.background.closing, e) })
	}
}

// renewPart is renewTogether for a part. If there are several, the others wait for its answer for a shorter
// time. An answer that comes later counts all the same, so the part is not sent again before.
func (r *renewer) renewPart(p part) (pinned []*hold, lost int, err error) {
	limit := r.ttl / timeoutsPerTTL
	if p.of > 1 {
		limit = min(limit, max(r.ttl/renewalsPerTTL/time.Duration(p.of), 2*r.ttl/retriesPerTTL))
	}
	sent := time.Now()
	postpone(p.holds, sent.Add(r.ttl/timeoutsPerTTL+r.ttl/retriesPerTTL))
	ctx, cancel := context.WithTimeout(r.background.closing, limit)
	defer cancel()
	pinned, lost, err = r.renewTogether(ctx, p.holds, func() { postpone(p.holds, time.Time{}) })
	if err != nil {
		for _, h := range p.holds {
			h.lease.noteFailure(err)
		}
	}
	switch {
	case err == nil:
		postpone(p.holds, time.Time{})
	case ctx.Err() == nil:
		postpone(p.holds, time.Now().Add(r.ttl/retriesPerTTL))
	}
	return pinned, lost, err
}

// leastDeadline returns when the first of some leases ends.
func leastDeadline(holds []*hold) time.Time {
	least := holds[0].lease.deadline()
	for _, h := range holds[1:] {
		if end := h.lease.deadline(); end.Before(least) {
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
		ctx, cancel := context.WithTimeout(r.background.closing, r.ttl/statementsPerTTL)
		defer cancel()
		return r.all.locks.table.Renewals.RenewAll(ctx, claims)
	}, func(outcomes []locktable.Outcome, failed error) { // after ctx has ended
		if failed == nil {
			_, late, _ := r.apply(holds, sent, outcomes)
			onLate()
			r.background.deleteLate(late)
		}
	})
	if errors.Is(err, bounded.ErrNoAnswer) {
		err = r.all.locks.table.Explain(ctx, "renew all", err)
	}
	if err != nil {
		return nil, 0, failure.Of(err, "")
	}
	pinned, late, lost := r.apply(holds, sent, outcomes)
	if len(late) > 0 {
		r.background.tasks.Go(func() { r.background.deleteLate(late) }) // the renewer does not wait for it
	}
	return pinned, lost, nil
}

// byRows cuts holds into parts that have at most so many rows each, or one hold.
func byRows(holds []*hold, most int) iter.Seq[[]*hold] {
	return func(yield func([]*hold) bool) {
		first, rows := 0, 0
		for i, h := range holds {
			n := len(h.locals)
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

// apply notes in holds what became of their rows. It returns those whose rows were passed
// over, those whose lease was over when the answer came: their rows last, and have no
// holder; and how many rows were gone. Those come last: their ends are reported, and an observer
// that takes its time must not keep the others from being renewed.
func (r *renewer) apply(holds []*hold, sent time.Time, outcomes []locktable.Outcome) (pinned, late []*hold, lost int) {
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
		if r.background.endTaken(h) {
			lost++
		}
	}
	return pinned, late, lost
}

// postpone leaves h out of the renewals of all leases until a time: the last statement for it may still be answered, or has
// just failed. The zero time lifts that.
func (l *lease) postpone(again time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewAfter = again
}

// notBefore returns the time before which h is not renewed with all other leases, or zero.
func (l *lease) notBefore() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewAfter
}

// mayBeRenewed reports whether the registry may still renew h.
func (h *hold) mayBeRenewed() bool {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	return h.lease.state == stateHeld && (h.renewUntil.IsZero() || h.lease.end.Before(h.renewUntil))
}

// autoRenewed extends the lease after its row was renewed by a statement that was sent at
// sent. It reports whether the answer came too late: then the row lasts and has no holder.
func (h *hold) autoRenewed(sent time.Time) (late bool) {
	h.lease.extend(h.renewedEnd(sent, h.ttl), sent.Add(h.ttl))
	h.endIfExpired() // the timer may come second
	return errors.Is(h.lost(), failure.ErrLockLost)
}
