package locktable

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/expiring"
)

const (
	// maxBatch is how many rows one batch has at most.
	maxBatch = 256
	// maxLanes is how many batches of one verb are sent at the same time at most.
	maxLanes = 4
	// maxAlone is how many statements that were left out of their batch are sent at a time.
	maxAlone = 4
	// blockedFor is how long statements for a key are sent alone after its row was found pinned.
	blockedFor = 5 * time.Second
)

// errRetryAlone makes a caller of a batch send its statement alone: the error of the batch need not be about its row.
var errRetryAlone = errors.New("send it alone")

// A batched verb is sent for one row, or for many at once. Calls that arrive while a batch is under way make the next
// one. Only here are the statement for one row and that for many chosen between.
//
// Acquisitions and releases are batched apart: a release reads, and two transactions that do both give each other
// serialization failures.
type batched[V any] struct {
	// one sends the verb for one row, many for some rows of different keys. many puts errRetryAlone into the outcomes
	// of rows that it leaves out.
	one  func(context.Context, Claim) batch.Outcome[V]
	many func(context.Context, []Claim, []batch.Outcome[V])
	// onLeave counts a claim whose caller leaves before the answer. What it returns gets the outcome.
	onLeave func(Claim) (onLate func(batch.Outcome[V]))
	// blocked, unless it is nil, has the keys whose rows were found pinned lately: in a batch they would delay the others. It is
	// nil if many passes over pinned rows.
	blocked *expiring.Map[string, struct{}]

	server  dbcall.Server
	policy  dbcall.Policy            // of the verb
	timeout time.Duration            // of a batch
	batcher *batch.Batcher[Claim, V] // nil if batching is disabled
	limiter *dbcall.Limiter          // for statements that a batch has left out
}

// makeBatcher makes what batches the calls.
func (b *batched[V]) makeBatcher(keepsValues *atomic.Bool) {
	b.limiter = dbcall.NewLimiter(maxAlone)
	b.batcher = batch.New(batch.Settings[Claim, V]{
		One: b.one, Many: b.many, KeepsValues: keepsValues.Load,
		Key: func(c Claim) string { return c.LockKey },
		OnLeave: func(c Claim) func(batch.Outcome[V]) {
			onLate := b.onLeave(c)
			return func(o batch.Outcome[V]) { go onLate(o) }
		},
		Max: maxBatch, Lanes: maxLanes, SlowAfter: batchSlowAfter, Timeout: b.timeout, Grace: bounded.Grace,
		TimedOut: batch.Outcome[V]{Err: fmt.Errorf("%w for %v", bounded.ErrNoAnswer, b.timeout), Unknown: true},
		IsFinal:  func(err error) bool { return errors.Is(err, errRetryAlone) || b.server.IsNotNow(err) },
	})
}

// do sends the verb for c, together with those of other callers if that can be.
func (b *batched[V]) do(ctx context.Context, c Claim) batch.Outcome[V] {
	if len(c.More) > 0 || b.batcher == nil {
		return b.alone(ctx, c)
	}
	if b.blocked != nil {
		if _, blocked := b.blocked.Get(c.LockKey); blocked {
			return b.alone(ctx, c)
		}
	}
	o := b.batcher.Do(ctx, c)
	if !errors.Is(o.Err, errRetryAlone) {
		return o
	}
	if err := b.limiter.Take(ctx); err != nil {
		o.Err = err
		return o
	}
	c.Resent = c.Resent || o.Resent || o.Unknown
	got := b.alone(ctx, c)
	b.limiter.Done(got.Err)
	if b.blocked != nil && b.server.IsBlocked(got.Err) {
		b.blocked.Put(c.LockKey, time.Now().Add(blockedFor), func(struct{}) struct{} { return struct{}{} })
	}
	got.Unknown, got.Resent = got.Unknown || o.Unknown, got.Resent || o.Resent
	return got
}

// alone sends the verb for one row, within the time for its answer.
func (b *batched[V]) alone(ctx context.Context, c Claim) batch.Outcome[V] {
	send := func(ctx context.Context) (batch.Outcome[V], error) {
		o := b.one(ctx, c)
		return o, o.Err
	}
	left := make(chan func(batch.Outcome[V]), 1)
	got, err := dbcall.Await(ctx, b.policy.Limit(c.TTL, b.timeout), send, func(late batch.Outcome[V], _ error) {
		(<-left)(late)
	})
	got.Err = err
	if errors.Is(err, bounded.ErrNoAnswer) {
		got.Unknown = true
		left <- b.onLeave(c)
	}
	return got
}
