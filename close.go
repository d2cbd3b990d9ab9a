package sqllock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sqllock/sqllock/internal/bounded"
)

// Close ends all waiting with [ErrClosed], ends the contexts of all leases with
// that cause, and then releases their rows, together. Stop the work under the leases
// first: once its row is gone, another process can acquire the lock. Afterwards every
// method that needs a lock returns ErrClosed, and Unlock too. The database stays open.
//
// Close also waits for acquisitions that are under way, also if their callers have given
// them up, and deletes what they acquire. So a process that ends after Close leaves no row
// behind, unless the error tells of one. Such a row stays until its time-to-live ends.
//
// ctx bounds all of it. A database that does not answer is given up after about 10 s, or
// the time-to-live if that is longer, also if ctx lasts. Close may be called again, and then
// tries to release what is left.
func (r *Registry) Close(ctx context.Context) error {
	r.sendAllAway()
	var over []*hold
	for _, h := range r.snapshot() {
		if h.finish(ErrClosed) {
			over = append(over, h)
		}
	}
	settled := make(chan error, 1)
	go func() { settled <- r.settle(ctx) }()
	left, err := r.releaseRows(ctx, over)
	silent := errors.Is(err, bounded.ErrNoAnswer)
	unsettled := <-settled
	err = errors.Join(err, unsettled)
	if !silent && unsettled == nil { // else there is no answer to this either
		_, failed := answered(ctx, "release", "", func() (struct{}, error) {
			return struct{}{}, r.repository.clearAllAbandoned(ctx)
		})
		err = errors.Join(err, failed)
	}
	for _, h := range left {
		r.repository.abandonLater(h.lastingParams())
	}
	return err
}

// sendAllAway closes the registry for those who come, and ends the wait of those who are
// there.
func (r *Registry) sendAllAway() {
	r.mu.Lock() // a caller that enlists a hold has seen that r is open
	r.close(ErrClosed)
	giveUps := slices.Collect(maps.Values(r.waiting))
	r.mu.Unlock()
	for _, giveUp := range giveUps { // without r.mu: it asks the context that the waiter came with
		giveUp(ErrClosed)
	}
}

// settle waits until all callers that were sent away have gone, and until it is known what
// became of the acquisitions that they, or others before them, have left under way.
func (r *Registry) settle(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, longestAnswer)
	defer cancel()
	_, err := bounded.Do(limited, 0, func() (struct{}, error) {
		r.entering.Wait()
		r.beating.Wait()
		return struct{}{}, r.repository.orphans.wait(limited)
	}, nil)
	if err != nil {
		return fmt.Errorf("%w: close: acquisitions under way may leave rows behind: %w", ErrDatabase, err)
	}
	return nil
}

// releaseRows deletes the rows of holds that are over, many at a time, so that the deletions
// are batched. If the database does not answer, no more of them are begun. It returns the
// holds whose rows may be left.
func (r *Registry) releaseRows(ctx context.Context, holds []*hold) (left []*hold, err error) {
	atOnce := maxLanes // without group commit each takes a connection
	if r.repository.batchers != nil {
		atOnce *= maxBatch
	}
	var silent atomic.Bool
	outcomes := make([]error, len(holds))
	var working sync.WaitGroup
	for first := range min(atOnce, len(holds)) {
		working.Go(func() {
			for i := first; i < len(holds); i += atOnce {
				outcomes[i] = errNotTried
				if silent.Load() {
					continue
				}
				_, outcomes[i] = r.repository.remove(ctx, holds[i].params())
				if errors.Is(outcomes[i], bounded.ErrNoAnswer) {
					silent.Store(true)
				}
			}
		})
	}
	working.Wait()
	notTried := 0
	for i, failed := range outcomes {
		switch {
		case failed == nil:
			continue
		case errors.Is(failed, errNotTried):
			notTried++
		default:
			err = errors.Join(err, failed)
		}
		left = append(left, holds[i])
	}
	if notTried > 0 {
		err = errors.Join(err, fmt.Errorf("%w: close: %d more rows were not deleted: %w", ErrDatabase, notTried, errNotTried))
	}
	return left, err
}

// errNotTried is why Close leaves rows after the database did not answer.
var errNotTried = errors.New("the database does not answer")
