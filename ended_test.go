package sqllock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// A detached context goes on after its deadline, as those do that callers wrote
// before there was context.WithoutCancel.
type detached struct {
	context.Context
	done chan struct{}
}

func (d detached) Done() <-chan struct{} { return d.done }
func (d detached) Err() error            { return nil }

func TestAContextThatOutlivesItsDeadline(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() chan struct{}{
		"NoChannel":             func() chan struct{} { return nil },
		"AChannelThatStaysOpen": func() chan struct{} { return make(chan struct{}) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newFixture(t, sqllock.Autocommit)
				lease := held(s)
				parent, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
				defer cancel()
				ctx := detached{parent, open()}
				answer := make(chan error, 1)
				go func() {
					_, err := s.lock.TryLock(ctx)
					answer <- err
				}()
				select {
				case err := <-answer:
					if !errors.Is(err, sqllock.ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				case <-time.After(ttl): // far beyond the second that is granted to a timer
					t.Fatal("a try waits for a context that never ends")
				}
				must(t, lease.Unlock(t.Context()))
			})
		})
	}
}

// With such a context, too, calls time out if the database does not answer.
func TestAContextThatOutlivesItsDeadlineIfTheServerDoesNotAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newPlainFixture(t, sqllock.RepositoryOptions{DisableBatching: true})
		stopAnswering(s)
		began := time.Now()
		parent, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Second))
		defer cancel()
		if _, err := s.lock.TryLock(detached{parent, make(chan struct{})}); !errors.Is(err, sqllock.ErrDatabase) {
			t.Error(err)
		}
		if took := time.Since(began); took > ttl+5*time.Second {
			t.Errorf("took %v", took)
		}
		waitUntilCallsFail(s)
	})
}
