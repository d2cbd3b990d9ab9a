package sqllock

import (
	"context"
	"errors"
	"fmt"
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
	b := &heartbeat{r, h.ttl}
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
		pinned, err := b.beat(holds)
		for len(pinned) > 0 && time.Since(began) < b.ttl/beatsPerTTL-b.ttl/beatRetry {
			if !sleep(b.registry.closing, b.ttl/beatRetry) {
				return
			}
			pinned = b.renewEach(pinned)
		}
		if err != nil && !errors.Is(err, ErrPinned) {
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
// it went. It returns those whose rows are pinned.
func (b *heartbeat) beat(holds []*hold) (pinned []*hold, err error) {
	if holds = renewable(holds); len(holds) == 0 {
		return nil, nil
	}
	r := b.registry
	if pinned, err = b.renewAll(holds); len(pinned) > 0 {
		if pinned = b.renewEach(pinned); len(pinned) > 0 {
			err = errors.Join(err, fmt.Errorf("%w: %d of %d leases, to be renewed soon", ErrPinned, len(pinned), len(holds)))
		}
	}
	if err != nil && r.closing.Err() != nil {
		return nil, err // the user knows
	}
	if r.onRenewal != nil {
		b.tell(len(holds), err)
	}
	return pinned, err
}

// tell tells the user's OnRenewal how a renewal went, and waits for it until the registry is
// closed: it may be OnRenewal that closes it.
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
	for part := range slices.Chunk(holds, maxRenewal) {
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

// renewEach renews holds one after the other, by the statement that waits for a row that
// others have locked: those who try to acquire a lock that is held lock its row for a
// moment, and many of them leave few gaps. It returns those whose rows are still pinned,
// as by a guarded transaction, which may last; these come last.
func (b *heartbeat) renewEach(holds []*hold) (pinned []*hold) {
	repository := b.registry.repository
	ctx, cancel := context.WithTimeout(b.registry.closing, b.ttl/beatTimeout)
	defer cancel()
	for _, h := range byUrgency(renewable(holds)) {
		sent := time.Now()
		renewed, err := repository.renew(ctx, h.params(), 0, func() {
			b.abandon(b.settle([]*hold{h}, sent, []Renewal{Renewed}))
		})
		switch {
		case err != nil:
			pinned = append(pinned, h)
		case renewed:
			b.settleNow([]*hold{h}, sent, []Renewal{Renewed})
		default:
			b.settleNow([]*hold{h}, sent, []Renewal{Lost})
		}
	}
	return pinned
}

// byUrgency sorts holds: those that a transaction was guarded with last, then those that end
// first.
func byUrgency(holds []*hold) []*hold {
	type state struct {
		guarded bool
		end     time.Time
	}
	states := make(map[*hold]state, len(holds))
	for _, h := range holds {
		h.mu.Lock()
		states[h] = state{h.guarded, h.end}
		h.mu.Unlock()
	}
	slices.SortFunc(holds, func(a, b *hold) int {
		switch x, y := states[a], states[b]; {
		case x.guarded == y.guarded:
			return x.end.Compare(y.end)
		case x.guarded:
			return 1
		default:
			return -1
		}
	})
	return holds
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
			if errors.Is(h.lost(), ErrLockLost) {
				late = append(late, h)
			}
		case Lost:
			if !h.isUnlocked() { // else its own Unlock was faster
				h.finish(ErrLockLost)
			}
		case Pinned: // see renewEach
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
