package names

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/transaction"
)

const (
	// retryAfter is how long the table is left alone after an error that may pass, and missingFor if it is missing, or
	// after manyFailures: a right that is missing has no class.
	retryAfter, missingFor = 5 * time.Second, 15 * time.Minute
	manyFailures           = 3
)

// An access is how statements of one kind get on with the table: rights may permit some of them.
type access struct {
	server dbcall.Server
	try    func() transaction.Try

	mu     sync.Mutex
	away   time.Time // until when there are none
	failed int       // how many have failed, one after the other
}

// isAway reports whether the table is left alone.
func (a *access) isAway() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.away)
}

// note notes how a statement has ended.
func (a *access) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed++
	switch class := a.server.Classify(err); {
	case err == nil:
		a.failed = 0
	case class == sqltext.Schema, class == sqltext.NoKey, class == sqltext.ReadOnly, a.failed >= manyFailures:
		a.away = time.Now().Add(missingFor)
	default:
		a.away = time.Now().Add(retryAfter)
	}
}

// errAway is why a statement is not sent.
var errAway = errors.New("the table of names is left alone for a while after errors")

// send sends a statement, unless the table is left alone.
func send[T any](ctx context.Context, a *access, limit time.Duration, statement func(context.Context, stmt.Executor) (T, error)) (value T, err error) {
	if a.isAway() {
		return value, errAway
	}
	value, err = dbcall.Await(ctx, max(limit, a.server.TestPatience), func(ctx context.Context) (value T, err error) {
		try := a.try()
		for try.Next(ctx) {
			value, try.Err = statement(ctx, try.Conn)
		}
		return value, try.Err
	}, nil)
	if err != nil && bounded.Ended(ctx) != nil {
		return value, err // it says nothing of the table
	}
	a.note(err)
	return value, err
}
