package demo

import (
	"context"
	"fmt"
	"time"
)

// roundTimeout is the time limit for a round, in addition to the time-to-live that a
// takeover takes.
const roundTimeout = 20 * time.Second

// A demo is one run: it gives the workers their orders, and records what they report.
type demo struct {
	*record
	workspace *workspace
	workers   *workers
	idle      []*process // workers that wait for an order
	ordered   int        // rounds, without that of the killed worker
	chosen    bool       // the worker to kill
}

// conduct runs the workers until all rounds are done.
func conduct(ctx context.Context, s *workspace, r *record) error {
	w, err := startWorkers(r.options, s)
	if err != nil {
		return err
	}
	defer w.stop()
	d := &demo{record: r, workspace: s, workers: w}
	limit := r.options.ttl + roundTimeout
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for !d.isDone() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timeout.C:
			return fmt.Errorf("no round was finished within %v", limit)
		case e := <-w.events:
			if err := d.handle(e); err != nil {
				return err
			}
			if e.Kind == finished {
				timeout.Reset(limit)
			}
		}
	}
	return nil
}

// handle records an event, prints it, and gives orders.
func (d *demo) handle(e event) (err error) {
	p := d.workers.all[e.worker-1]
	switch e.Kind {
	case ready:
		d.idle = append(d.idle, p)
	case finished:
		d.idle = append(d.idle, p)
		value, err := readCounter(d.workspace.counter())
		if err != nil {
			return err
		}
		if err := d.finished(e, value); err != nil {
			return err
		}
	case hanging:
		at := time.Now()
		p.kill()
		d.ordered-- // another worker must do this round
		if err := d.killed(e, at); err != nil {
			return err
		}
	case ended:
		if !p.killed {
			return p.failure()
		}
	}
	d.giveOrders()
	return nil
}

// giveOrders gives rounds to idle workers. It starts when all workers are ready, so that
// none is done before others have begun.
func (d *demo) giveOrders() {
	if d.begun.IsZero() {
		if len(d.idle) < len(d.workers.all) {
			return
		}
		d.begun = time.Now()
	}
	for len(d.idle) > 0 && d.hasRounds() {
		p := d.idle[0]
		d.idle = d.idle[1:]
		d.ordered++
		if d.chosen || !d.isTimeToKill() {
			p.order(orderWork)
			continue
		}
		d.chosen = true
		p.order(orderHang)
	}
}

// hasRounds reports whether there are rounds to do. Workers must wait for the lock until
// one has taken over.
func (d *demo) hasRounds() bool {
	o := d.options
	if o.duration == 0 {
		return d.ordered < o.rounds
	}
	return time.Since(d.begun) < o.duration || !o.withoutLock && d.takeover.IsZero()
}

// isTimeToKill reports whether a third of the demo is over. Without a lock there is nothing to
// take over.
func (d *demo) isTimeToKill() bool {
	switch o := d.options; {
	case o.withoutLock:
		return false
	case o.duration != 0:
		return time.Since(d.begun) > o.duration/3
	default:
		return len(d.rounds) >= o.rounds/3
	}
}

// isDone reports whether all rounds are done, and a worker has taken over.
func (d *demo) isDone() bool {
	if d.begun.IsZero() || d.hasRounds() || len(d.rounds) < d.ordered {
		return false
	}
	return d.options.withoutLock || !d.takeover.IsZero()
}
