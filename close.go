package sqllock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/observe"
)

// settleTimeout is how long Close waits for acquisitions that are under way.
const settleTimeout = 10 * time.Second

// closeAll is [Registry.Close].
func (s *locks) closeAll(ctx context.Context) error {
	s.endWaiting()
	var ended []*hold
	for _, h := range s.allHolds() {
		if h.finish(observe.EndClosed, nil) {
			ended = append(ended, h)
		}
	}
	settled := make(chan error, 1)
	go func() { settled <- s.settle(ctx) }()
	left, noAnswer, err := s.releaseRows(ctx, ended)
	unsettled := <-settled
	err = errors.Join(err, unsettled)
	if !noAnswer && unsettled == nil { // otherwise there is no answer to this either
		err = errors.Join(err, failure(s.table.DeleteUnsettled(ctx), ""))
	}
	for _, h := range left {
		s.table.MarkUnsettled(h.lastingClaim())
	}
	return err
}

// endWaiting closes the registry for new callers, and ends the wait of those that there
// are.
func (s *locks) endWaiting() {
	s.mu.Lock() // a caller that adds a hold has seen that s is open
	s.close(ErrClosed)
	giveUps := s.giveUpsLocked(func(*hold) bool { return true })
	s.mu.Unlock()
	for _, giveUp := range giveUps { // without s.mu: it calls the context that the waiter came with
		giveUp(ErrClosed)
	}
}

// settle waits until all callers whose wait was ended have returned, until the renewals
// have ended, and until it is known what became of acquisitions whose callers did not wait
// for the answer.
func (s *locks) settle(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	_, err := bounded.Do(limited, 0, func() (struct{}, error) {
		s.calls.Wait()
		s.renewal.tasks.Wait()
		return struct{}{}, s.table.Settle(limited)
	}, nil)
	if err != nil {
		return fmt.Errorf("%w: close: acquisitions under way may leave rows behind: %w", ErrDatabase, err)
	}
	return nil
}

// releaseRows deletes the rows of holds that are over, many at a time, so that the
// deletions are batched. If the database does not answer it begins no more of them, and
// noAnswer is true. It returns the holds whose rows may be left.
func (s *locks) releaseRows(ctx context.Context, holds []*hold) (left []*hold, noAnswer bool, err error) {
	var stopped atomic.Bool
	outcomes := make([]error, len(holds))
	var working sync.WaitGroup
	workers := min(s.table.MaxReleases(), len(holds))
	for first := range workers {
		working.Go(func() {
			for i := first; i < len(holds); i += workers {
				outcomes[i] = errNotTried
				if stopped.Load() {
					continue
				}
				_, failed := s.table.Release(ctx, holds[i].claim())
				outcomes[i] = failure(failed, holds[i].key)
				if isNoAnswer(failed) {
					stopped.Store(true)
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
	return left, stopped.Load(), err
}

// errNotTried is why Close leaves rows after the database did not answer.
var errNotTried = errors.New("the database does not answer")
