package locktable

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/expiring"
)

const (
	// maxBatch is how many rows one batch has at most.
	maxBatch = 256
	// maxLanes is how many batches of one verb are sent at the same time at most.
	maxLanes = 4
	// maxAlone is how many statements that were left out of their batch are sent at a time.
	maxAlone = 4
	// blockedFor is how long statements for a key are sent alone after its row was found
	// pinned.
	blockedFor = 5 * time.Second
)

// errRetryAlone makes a caller of a batch send its statement alone: the error of the batch
// need not be about its row.
var errRetryAlone = errors.New("send it alone")

// An effect is what a statement that changes one row has done.
type effect[V any] struct {
	value V
	// unknown reports whether the statement may have been applied without an answer.
	unknown bool
	// resent reports whether a statement that acquires was sent again because its connection was
	// closed. The answer is that of the last one; the server may still apply an earlier one.
	resent bool
}

// A batched verb is sent for one row, or for many at once. Calls that arrive while a batch is
// under way make the next one. It is the only place where the two meet.
//
// Acquisitions and releases are batched apart: a release reads, and two transactions that do
// both give each other serialization failures.
type batched[V any] struct {
	// one sends the verb for one row, many for some rows of different keys. many puts
	// errRetryAlone into the outcomes of rows that it leaves out.
	one  func(context.Context, Claim) (effect[V], error)
	many func(context.Context, []Claim, []batch.Outcome[effect[V]])
	// onLeave, unless it is nil, counts a claim whose caller leaves before the answer, and
	// onOrphan gets its effect.
	onLeave  func()
	onOrphan func(Claim, effect[V])
	// blocked, unless it is nil, has the keys that are not batched for a while. It is nil if
	// many passes over pinned rows.
	blocked *blockedKeys

	errors  classifier
	policy  policy                           // of the verb
	batcher *batch.Batcher[Claim, effect[V]] // nil if batching is disabled
	turns   *turns                           // for statements that a batch has left out
}

// makeBatcher makes what batches the calls.
func (b *batched[V]) makeBatcher(keepsValues *atomic.Bool) {
	b.turns = newTurns(maxAlone)
	b.batcher = batch.New(batch.Settings[Claim, effect[V]]{
		One: b.one, Many: b.many, KeepsValues: keepsValues.Load,
		Key: func(c Claim) string { return c.LockKey },
		OnLeave: func(Claim) {
			if b.onLeave != nil {
				b.onLeave()
			}
		},
		OnOrphan: func(c Claim, o batch.Outcome[effect[V]]) {
			if b.onOrphan != nil {
				go b.onOrphan(c, o.Value)
			}
		},
		Max: maxBatch, Lanes: maxLanes, SlowAfter: batchSlowAfter, Timeout: batchTimeout, Grace: bounded.Grace,
		TimedOut: batch.Outcome[effect[V]]{Value: effect[V]{unknown: true}, Err: errNoAnswer},
		IsFinal:  func(err error) bool { return errors.Is(err, errRetryAlone) || b.errors.isRefusal(err) },
	})
}

// do sends the verb for c, together with those of other callers if that can be.
func (b *batched[V]) do(ctx context.Context, c Claim) (effect[V], error) {
	if c.IsJoint() || b.batcher == nil || b.blocked != nil && b.blocked.has(c.LockKey) { // it may wait for its row, and must not delay others
		return b.alone(ctx, c)
	}
	o, sent := b.batcher.Do(ctx, c)
	if !errors.Is(o.Err, errRetryAlone) {
		if sent && o.Err != nil && bounded.Ended(ctx) != nil {
			o.Value.unknown = true
		}
		return o.Value, o.Err
	}
	if err := b.turns.take(ctx); err != nil {
		return o.Value, err
	}
	got, err := b.alone(ctx, c)
	b.turns.pass(err)
	if b.blocked != nil && b.errors.isBlocked(err) {
		b.blocked.add(c.LockKey)
	}
	got.unknown, got.resent = got.unknown || o.Value.unknown, got.resent || o.Value.resent
	return got, err
}

// alone sends the verb for one row, within the time for its answer.
func (b *batched[V]) alone(ctx context.Context, c Claim) (effect[V], error) {
	send := func(ctx context.Context) (effect[V], error) { return b.one(ctx, c) }
	if b.onOrphan == nil {
		return await(ctx, b.policy.limit(c.TTL), send, nil)
	}
	counted := make(chan struct{})
	got, err := await(ctx, b.policy.limit(c.TTL), send, func(late effect[V], _ error) {
		<-counted
		b.onOrphan(c, late)
	})
	if errors.Is(err, bounded.ErrNoAnswer) {
		got.unknown = true
		b.onLeave()
		close(counted)
	}
	return got, err
}

// blockedKeys are the keys whose rows were found pinned lately: in a batch they would delay
// the others.
type blockedKeys struct {
	till expiring.Map[string, struct{}]
}

func (b *blockedKeys) has(lockKey string) bool {
	_, ok := b.till.Get(lockKey)
	return ok
}

func (b *blockedKeys) add(lockKey string) {
	b.till.Put(lockKey, time.Now().Add(blockedFor), func(struct{}) struct{} { return struct{}{} })
}
