package leader

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
)

// A Leader is who leads a role, as its row says. The zero Leader means that there is none.
type Leader struct {
	// Client is the client id of the leader's repository: see
	// [sqllock.RepositoryOptions].ClientID. It has room for a host and a port, so that others
	// can forward requests to the leader. For a leader in Java it is the whole CLIENT_ID.
	Client string
	// Holder is CLIENT_ID: each term has its own.
	Holder string
	// Age is how long this leader has led, with the limits of [sqllock.Row].Age.
	Age time.Duration
	// Left is how long the lease lasts unless it is renewed, by the database's clock.
	Left time.Duration
	// Me reports whether the leader is the elector that was asked. It is false in what
	// [Current] and [Observe] return, which belong to no elector.
	Me bool
}

// Current reads who leads the role. It is for processes that are no candidates. repository
// needs the region, table and keys of the electors.
//
// The errors are [sqllock.ErrDatabase], [sqllock.ErrInvalid], or that of ctx.
func Current(ctx context.Context, repository *sqllock.Repository, role string) (Leader, error) {
	row, ok, err := repository.Peek(ctx, role)
	if err != nil || !ok || row.Expired() {
		return Leader{}, err
	}
	return Leader{Client: clientOf(row.Holder), Holder: row.Holder, Age: row.Age, Left: row.Left}, nil
}

// Observe reads who leads the role each time every has passed, and when the leader's lease
// must end. It yields the first leader, and each one after that, the zero Leader when there is
// none. An error of the database is yielded each time that it occurs, with the zero Leader;
// after it the next leader is yielded even if it is the same as before.
//
// The sequence ends when ctx ends, and after an [sqllock.ErrInvalid]. A term that is shorter
// than every may not be seen. If every is 0 it is 1 s. Observe starts no goroutine.
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
			if !sleep(ctx, untilNextRead(now, every)) {
				return
			}
		}
	}
}

// untilNextRead returns the time until the row is to be read again: every, or what is left of
// the lease if that is less.
func untilNextRead(leader Leader, every time.Duration) time.Duration {
	if leader.Holder == "" || leader.Left >= every {
		return every
	}
	// A row is expired only after its last microsecond, or millisecond.
	return leader.Left + time.Millisecond
}

// numberDigits is how many hexadecimal digits the number of an acquisition has, which follows
// the client id and a dash in CLIENT_ID.
const numberDigits = 11

// clientOf returns the client id of a CLIENT_ID, or all of it if it was not made by sqllock.
func clientOf(holder string) string {
	dash := strings.LastIndexByte(holder, '-')
	if dash < 0 || len(holder)-dash-1 != numberDigits || strings.Trim(holder[dash+1:], "0123456789abcdef") != "" {
		return holder
	}
	return holder[:dash]
}

// sleep waits for d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
