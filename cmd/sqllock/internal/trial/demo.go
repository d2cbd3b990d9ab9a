package trial

import (
	"context"
	"fmt"
	"time"
)

// eventTimeout is the time limit for the next event of the workers, in addition to the time-to-live
// that a takeover takes.
const eventTimeout = 20 * time.Second

// A demo is one run: it gives the workers their orders, and records what they report.
type demo struct {
	record
	workspace *workspace
	*crew
	idle    []*process // workers that wait for an order
	ordered int        // rounds, without that of the killed worker
	chosen  bool       // the worker to kill
}

// conduct runs the workers until all rounds are done.
func (d *demo) conduct(ctx context.Context) error {
	d.crew = newCrew()
	defer d.stop()
	for range d.options.workers {
		if err := d.start(d.options, &d.workspace.flags, d.workspace.directory); err != nil {
			return err
		}
	}
	limit := d.options.ttl + eventTimeout
	for d.rounds < d.options.rounds {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(limit):
			return fmt.Errorf("no round was finished within %v", limit)
		case e := <-d.events:
			if err := d.handle(e); err != nil {
				return err
			}
		}
	}
	return d.err
}

// handle records an event, prints it, and gives orders.
func (d *demo) handle(e event) (err error) {
	switch e.Kind {
	case ready:
		d.idle = append(d.idle, e.from)
	case finished:
		if d.counter, err = readCounter(d.workspace.directory); err != nil {
			return err
		}
		d.finished(e, e.from.number)
	case hanging:
		at := time.Now()
		e.from.kill()
		d.ordered-- // another worker must do this round
		d.killed(e, e.from.number, at)
	case failed, guarding, committed, taken: // of verify alone
	case ended:
		if !e.from.killed {
			return e.from.failure()
		}
	}
	d.giveOrders()
	return d.err
}

// giveOrders gives rounds to idle workers. It starts when all workers are ready, so that
// none is done before others have begun.
//
// After a third of the rounds one worker is told to hang, to be killed. Without a lock there is
// nothing to take over, and none is killed.
func (d *demo) giveOrders() {
	if d.begun.IsZero() {
		if len(d.idle) < len(d.workers) {
			return
		}
		d.begun = time.Now()
	}
	o := d.options
	for ; len(d.idle) > 0 && d.ordered < o.rounds; d.ordered++ {
		order := orderWork
		if !o.withoutLock && !d.chosen && d.rounds >= o.rounds/3 {
			order, d.chosen = orderHang, true
		}
		d.idle[0].order(order)
		d.idle = d.idle[1:]
	}
}
