package leader

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bounded"
)

// Current reads who leads the role. It is for processes that are no candidates. repository needs the region, table
// and keys of the electors.
//
// The errors are [sqllock.ErrDatabase], [sqllock.ErrInvalid], or that of ctx.
func Current(ctx context.Context, repository *sqllock.Repository, role string) (Leader, error) {
	row, ok, err := repository.Peek(ctx, role)
	if err != nil || !ok || row.Expired() {
		return Leader{}, err
	}
	return Leader{Client: clientOf(row.Holder), Holder: row.Holder, Age: row.Age, Left: row.Left}, nil
}

// Observe reads who leads the role each time every has passed, and when the leader's lease must end. It yields the
// first leader, and each one after that, the zero Leader when there is none. An error of the database is yielded each
// time that it occurs, with the zero Leader; after it the next leader is yielded even if it is the same as before.
//
// The sequence ends when ctx ends, and after an [sqllock.ErrInvalid]. A term that is shorter than every may not be
// seen. If every is 0 it is 1 s. Observe starts no goroutine.
func Observe(ctx context.Context, repository *sqllock.Repository, role string, every time.Duration) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if every < 0 {
			yield(Leader{}, invalid("observe every %v: it is negative", every))
			return
		}
		if every == 0 {
			every = DefaultObserveEvery
		}
		var last Leader
		for known := false; ; {
			now, err := Current(ctx, repository, role)
			if ctx.Err() != nil {
				return
			}
			if changed := !known || now.Holder != last.Holder; err != nil || changed {
				if !yield(now, err) || errors.Is(err, sqllock.ErrInvalid) {
					return
				}
			}
			last, known = now, err == nil
			if !bounded.Sleep(ctx, untilNextRead(now, every)) {
				return
			}
		}
	}
}

// untilNextRead returns the time until the row is to be read again: every, or what is left of the lease if that is
// less.
func untilNextRead(leader Leader, every time.Duration) time.Duration {
	if leader.Holder == "" || leader.Left >= every {
		return every
	}
	// A row is expired only after its last microsecond, or millisecond.
	return leader.Left + time.Millisecond
}
