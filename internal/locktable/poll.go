package locktable

import (
	"context"
	"time"
)

// Poll is [Table.Read] for a waiter that reads the row again and again. It may wait for up to
// longest in order to be sent with the polls of other waiters.
func (t *Table) Poll(ctx context.Context, c Claim, longest time.Duration) (Row, error) {
	call, turn := t.polls.join(c, longest)
	if turn != nil {
		row, _, err := t.Read(ctx, c)
		t.polls.done(turn) //nolint:contextcheck // the next poll is that of others
		return row, err
	}
	timer := time.NewTimer(t.PollDelay() + pollSlowAfter)
	defer timer.Stop()
	select {
	case a := <-call.answer:
		return a.row, a.err
	case <-ctx.Done():
		t.polls.leave(call)
		return Row{}, t.errors.explain(ctx, reading.op, ctx.Err())
	case <-timer.C:
		t.polls.leave(call)
		return t.ReadFirst(ctx, c)
	}
}

// PollDelay returns how long a call of Poll waits now until its row is read.
func (t *Table) PollDelay() time.Duration { return t.polls.delay() }

// pollMany reads the rows of many keys for their waiters.
func (t *Table) pollMany(ctx context.Context, v values) (map[string]Row, error) {
	return callAlone(ctx, t.errors, reading, v.TTL, func(ctx context.Context) (map[string]Row, error) {
		return t.peekMany(ctx, v)
	}, nil)
}
