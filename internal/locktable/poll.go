package locktable

import (
	"context"
	"errors"
	"time"
)

// Poll is [Table.Read] for a waiter that reads the row again and again. It waits until the next
// poll, which may read the rows of other waiters, too. If a value comes from p.Wake before the
// answer, woken is true, and there is no row.
func (t *Table) Poll(ctx context.Context, c Claim, p Pace) (row Row, woken bool, err error) {
	call := t.polls.join(c, p)
	defer t.polls.leave(call)
	var over <-chan time.Time
	if p.Left > 0 {
		timer := time.NewTimer(p.Left)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case a := <-call.answer:
		switch {
		case a.turn != nil:
			row, _, err = t.Read(ctx, c)
			t.polls.end(a.turn)
		case errors.Is(a.err, errRetryAlone):
			row, err = t.readInTurn(ctx, c, t.polled)
		default:
			row, err = a.row, a.err
		}
		return row, false, err
	case <-over:
		row, _, err = t.Read(ctx, c)
		return row, false, err
	case <-p.Wake:
		return Row{}, true, nil
	case <-ctx.Done():
		return Row{}, false, t.errors.explain(ctx, reading.op, ctx.Err())
	}
}

// pollMany reads the rows of many keys for their waiters.
func (t *Table) pollMany(ctx context.Context, v values) (map[string]Row, error) {
	return callAlone(ctx, t.errors, polling, 0, func(ctx context.Context) (map[string]Row, error) {
		return t.peekMany(ctx, v)
	}, nil)
}
