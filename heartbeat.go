package sqllock

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
)

// A heartbeat comes each third of the time-to-live and may take a quarter of it,
// because a connection that has gone dead does not say so; the next try, which
// gets another connection, comes soon after. So there are at least two tries
// before a lease ends.
const (
	beatsPerTTL   = 3
	beatTimeout   = 4
	beatRetry     = 15
	beatLongGrace = 0 // whoever is late is late
)

// A heartbeat renews the leases of one time-to-live in a registry, all of them by
// one statement. It has a goroutine for as long as there are such leases. It
// depends on no caller's context.
type heartbeat struct {
	registry *Registry
	ttl      time.Duration
}

// watchOverLocked sees that h is renewed. Registry.mu is held.
func (r *Registry) watchOverLocked(h *hold) {
	if !r.autoRenew {
		return
	}
	if r.maxHold > 0 {
		h.renewable = h.sent.Add(r.maxHold)
	}
	if _, ok := r.heartbeats[h.ttl]; ok {
		return
	}
	b := &heartbeat{r, h.ttl}
	r.heartbeats[h.ttl] = b
	r.beating.Go(b.run)
}

// run beats until there is nothing to renew, or the registry is closed.
func (b *heartbeat) run() {
	for pause := b.ttl / beatsPerTTL; sleep(b.registry.closing, pause); {
		began := time.Now()
		holds := b.holds()
		if len(holds) == 0 {
			return
		}
		if err := b.beat(holds); err != nil {
			pause = b.ttl / beatRetry
		} else {
			pause = max(b.ttl/beatsPerTTL-time.Since(began), b.ttl/beatRetry)
		}
	}
}

// holds returns what is to be renewed. If that is nothing, the heartbeat is over:
// the next lease starts another.
func (b *heartbeat) holds() []*hold {
	r := b.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	var holds []*hold
	for h := range r.holds {
		if h.ttl == b.ttl {
			holds = append(holds, h)
		}
	}
	if len(holds) == 0 {
		delete(r.heartbeats, b.ttl)
	}
	return holds
}

// beat renews those of the holds that may be renewed, and tells the user's
// OnRenewal how it went.
func (b *heartbeat) beat(holds []*hold) error {
	holds, rows := renewable(holds)
	if len(rows) == 0 {
		return nil
	}
	r, sent := b.registry, time.Now()
	ctx, cancel := context.WithTimeout(r.closing, b.ttl/beatTimeout)
	defer cancel()
	settle := func(outcome []Renewal, err error) {
		if err == nil {
			b.settle(holds, sent, outcome)
		}
	}
	outcome, err := bounded.Do(ctx, beatLongGrace, func() ([]Renewal, error) {
		return r.repository.renewAll(ctx, rows, b.ttl)
	}, settle)
	settle(outcome, err)
	if err != nil && r.closing.Err() != nil {
		return err // the user knows
	}
	if r.onRenewal != nil {
		r.onRenewal(len(rows), err)
	}
	return err
}

// renewable returns the holds that may be renewed, and their rows.
func renewable(all []*hold) (holds []*hold, rows []Ownership) {
	for _, h := range all {
		if h.mayBeRenewed() {
			holds, rows = append(holds, h), append(rows, Ownership{h.key(), h.holder})
		}
	}
	return holds, rows
}

func (b *heartbeat) settle(holds []*hold, sent time.Time, outcome []Renewal) {
	for i, h := range holds {
		switch outcome[i] {
		case Renewed:
			h.extend(h.upTo(leaseEnd(sent, b.ttl)))
			if errors.Is(h.lost(), ErrLockLost) {
				// The answer came too late: the row lasts, and nobody holds it.
				h.abandon(b.registry.closing)
			}
		case Lost:
			if !h.isUnlocked() { // else its own Unlock was faster
				h.finish(ErrLockLost)
			}
		case Pinned: // nobody can take it; the next beat may be luckier
		}
	}
}

// mayBeRenewed tells whether a heartbeat still concerns h.
func (h *hold) mayBeRenewed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.over && !h.unlocked && (h.renewable.IsZero() || h.end.Before(h.renewable))
}

// upTo limits end to what MaxHold allows.
func (h *hold) upTo(end time.Time) time.Time {
	if !h.renewable.IsZero() && end.After(h.renewable) {
		return h.renewable
	}
	return end
}
