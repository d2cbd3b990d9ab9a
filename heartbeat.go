package sqllock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
)

// A heartbeat comes each third of the time-to-live and may take a quarter of it,
// because a connection that has gone dead does not say so; the next try, which
// gets another connection, comes soon after. So there are at least two tries
// before a lease ends. The statement itself has half of the time-to-live: an answer
// that comes after its try, on a slow server, still counts.
const (
	beatsPerTTL   = 3
	beatTimeout   = 4
	beatStatement = 2
	beatRetry     = 15
	beatLongGrace = 0 // an answer to the next try will do
)

// A heartbeat renews the leases of one time-to-live in a registry, all of them by
// one statement. It has a goroutine for as long as there are such leases. It
// depends on no caller's context.
type heartbeat struct {
	registry *Registry
	ttl      time.Duration
	pinned   pinnedRenewals
}

// watchOverLocked sees that h is renewed. Registry.mu is held.
func (r *Registry) watchOverLocked(h *hold) {
	if !h.autoRenew {
		return
	}
	if r.maxHold > 0 {
		h.renewable = h.sent.Add(r.maxHold)
	}
	if _, ok := r.heartbeats[h.ttl]; ok {
		return
	}
	b := newHeartbeat(r, h.ttl)
	r.heartbeats[h.ttl] = b
	r.beating.Go(b.run)
}

// run renews until there is nothing to renew, or the registry is closed.
func (b *heartbeat) run() {
	for pause := b.ttl / beatsPerTTL; sleep(b.registry.closing, pause); {
		began := time.Now()
		holds := b.holds()
		if len(holds) == 0 {
			return
		}
		pause = b.ttl / beatRetry
		if b.beat(holds) {
			pause = max(b.ttl/beatsPerTTL-time.Since(began), pause)
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
		if h.autoRenew && h.ttl == b.ttl {
			holds = append(holds, h)
		}
	}
	if len(holds) == 0 {
		delete(r.heartbeats, b.ttl)
	}
	return holds
}

// beat renews those of the holds that may be renewed, and tells the user's OnRenewal how
// it went. It reports whether the statements for all of them succeeded.
func (b *heartbeat) beat(holds []*hold) bool {
	if holds = renewable(holds); len(holds) == 0 {
		return true
	}
	r := b.registry
	pinned, failed := b.renewAll(holds)
	err := errors.Join(failed, b.renewPinned(pinned))
	if err != nil && r.closing.Err() != nil {
		return false // the user knows
	}
	if r.onRenewal != nil {
		b.tell(len(holds), err)
	}
	return failed == nil
}

// tell calls the user's OnRenewal, and waits for it unless the registry is closed: it may
// call Close, which waits for the heartbeat.
func (b *heartbeat) tell(leases int, err error) {
	told := make(chan struct{})
	go func() {
		defer close(told)
		b.registry.onRenewal(leases, err)
	}()
	select {
	case <-told:
	case <-b.registry.closing.Done():
	}
}

// renewAll renews holds by one statement, or one for each part of them if there are very
// many: what one part has renewed does not depend on the next. It passes over rows that are
// pinned, and returns their holds.
func (b *heartbeat) renewAll(holds []*hold) (pinned []*hold, err error) {
	r := b.registry
	ctx, cancel := context.WithTimeout(r.closing, b.ttl/beatTimeout)
	defer cancel()
	for part := range slices.Chunk(holds, r.renewalPart) {
		rows, sent := rowsOf(part), time.Now()
		outcome, failed := bounded.Do(ctx, beatLongGrace, func() ([]Renewal, error) { //nolint:contextcheck // it outlasts ctx
			ctx, cancel := context.WithTimeout(r.closing, b.ttl/beatStatement)
			defer cancel()
			return r.repository.renewAll(ctx, rows, b.ttl)
		}, func(outcome []Renewal, failed error) {
			if failed == nil {
				b.abandon(b.settle(part, sent, outcome))
			}
		})
		if failed == nil {
			b.settleNow(part, sent, outcome)
		}
		err = errors.Join(err, failed)
		for i, h := range part {
			if failed == nil && outcome[i] == Pinned {
				pinned = append(pinned, h)
			}
		}
	}
	return pinned, err
}

// renewable returns the holds that may be renewed.
func renewable(all []*hold) (holds []*hold) {
	for _, h := range all {
		if h.mayBeRenewed() {
			holds = append(holds, h)
		}
	}
	return holds
}

func rowsOf(holds []*hold) []Ownership {
	rows := make([]Ownership, len(holds))
	for i, h := range holds {
		rows[i] = Ownership{h.key(), h.holder}
	}
	return rows
}

// settleNow is settle for the heartbeat itself, which does not wait until the rows of
// leases that were renewed too late are gone.
func (b *heartbeat) settleNow(holds []*hold, sent time.Time, outcome []Renewal) {
	if late := b.settle(holds, sent, outcome); len(late) > 0 {
		b.registry.beating.Go(func() { b.abandon(late) })
	}
}

// settle tells holds what became of their rows. It returns those whose lease was over when
// the answer came: their rows last, and have no holder.
func (b *heartbeat) settle(holds []*hold, sent time.Time, outcome []Renewal) (late []*hold) {
	for i, h := range holds {
		switch outcome[i] {
		case Renewed:
			h.extend(h.upTo(leaseEnd(sent, b.ttl)), sent.Add(b.ttl))
			h.check() // the timer may come second
			if errors.Is(h.lost(), ErrLockLost) {
				late = append(late, h)
			}
		case Lost:
			if !h.isUnlocked() { // else its own Unlock was faster
				h.finish(ErrLockLost)
			}
		case Pinned: // see renewPinned
		}
	}
	return late
}

// abandon deletes the rows of holds, all at once.
func (b *heartbeat) abandon(holds []*hold) {
	var abandoning sync.WaitGroup
	for _, h := range holds {
		abandoning.Go(func() { h.abandon(b.registry.closing) })
	}
	abandoning.Wait()
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
