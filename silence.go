package sqllock

import (
	"context"
	"errors"

	"github.com/sqllock/sqllock/internal/bounded"
)

// silence is the cause that ends a wait if the database has not answered the caller before it
// in the queue.
type silence struct{ err error }

func (s *silence) Error() string { return s.err.Error() }
func (s *silence) Unwrap() error { return s.err }

// shareSilence ends the wait of those who queue behind h with err, if err says that the
// database does not answer. Each would find it out by itself otherwise, one after the other,
// after seconds each.
func (r *Registry) shareSilence(h *hold, err error) {
	if !errors.Is(err, bounded.ErrNoAnswer) && !errors.Is(err, errTimedOut) || h.entry.mutex.Waiters() == 0 {
		return
	}
	var giveUps []context.CancelCauseFunc
	r.mu.Lock()
	for other, giveUp := range r.waiting {
		if other != h && other.entry == h.entry {
			giveUps = append(giveUps, giveUp)
		}
	}
	r.mu.Unlock()
	for _, giveUp := range giveUps { // without r.mu: it asks the context that the waiter came with
		giveUp(&silence{err})
	}
}

// silenceOf returns what ended the wait of waiting, if that was the silence of the database
// towards another caller.
func silenceOf(waiting context.Context) error {
	var s *silence
	if errors.As(context.Cause(waiting), &s) {
		return s.err
	}
	return nil
}
