package demo

import (
	"context"
	"fmt"
	"time"
)

// roundTimeout is the time limit for a round, in addition to the time-to-live that a
// takeover takes.
const roundTimeout = 20 * time.Second

// A scheduler gives the workers their orders.
type scheduler struct {
	*options
	workspace *workspace
	workers   *workers
	timeline  *timeline
	begun     time.Time
	ordered   int              // rounds, without that of the killed worker
	toKill    *workerProcess   // the worker that was ordered to hang
	idle      []*workerProcess // workers that wait for an order
}

// schedule runs the workers until all rounds are done.
func schedule(ctx context.Context, o *options, s *workspace, t *timeline, v view) error {
	w, err := startWorkers(o, s)
	if err != nil {
		return err
	}
	defer w.stop()
	for _, p := range w.all {
		t.addLane(p.child.Cmd.Process.Pid)
	}
	x := &scheduler{options: o, workspace: s, workers: w, timeline: t}
	redraw := time.NewTicker(frame)
	defer redraw.Stop()
	timeout := time.NewTimer(o.ttl + roundTimeout)
	defer timeout.Stop()
	for !x.isDone() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timeout.C:
			return fmt.Errorf("no round was finished within %v", o.ttl+roundTimeout)
		case <-redraw.C:
			v.draw(time.Now())
		case e := <-w.events:
			if err := x.handle(e); err != nil {
				return err
			}
			if err := v.show(e); err != nil {
				return fmt.Errorf("show an event: %w", err)
			}
			if e.Kind == finished {
				timeout.Reset(o.ttl + roundTimeout)
			}
		}
	}
	return nil
}

// handle records an event and reacts to it.
func (x *scheduler) handle(e event) (err error) {
	x.timeline.add(e)
	p := x.workers.of(e)
	switch e.Kind {
	case finished:
		if x.timeline.counter, err = readCounter(x.workspace.counter()); err != nil {
			return err
		}
	case ready:
		x.idle = append(x.idle, p)
	case hanging:
		at := time.Now()
		p.kill()
		x.timeline.addKill(e, at)
		x.ordered-- // another worker must do this round
	case ended:
		if !p.killed {
			return p.failure()
		}
	case waiting, entered:
	}
	x.giveOrders()
	return nil
}

// giveOrders gives rounds to idle workers. It starts when all workers are ready, so that
// none is done before others have begun.
func (x *scheduler) giveOrders() {
	if x.begun.IsZero() {
		if len(x.idle) < len(x.workers.all) {
			return
		}
		x.begun = time.Now()
		x.timeline.begin(x.begun)
	}
	for len(x.idle) > 0 && x.hasRounds() {
		p := x.idle[0]
		x.idle = x.idle[1:]
		x.ordered++
		if x.toKill == nil && x.isTimeToKill() {
			x.toKill = p
			p.order(orderHang)
			continue
		}
		p.order(orderWork)
	}
}

// hasRounds reports whether there are rounds to do. Workers must wait for the lock until
// one has taken over.
func (x *scheduler) hasRounds() bool {
	if x.duration == 0 {
		return x.ordered < x.rounds
	}
	return time.Since(x.begun) < x.duration || x.kills() && x.timeline.takeover == nil
}

// isTimeToKill reports whether a third of the demo is over.
func (x *scheduler) isTimeToKill() bool {
	switch {
	case !x.kills():
		return false
	case x.duration != 0:
		return time.Since(x.begun) > x.duration/3
	default:
		return x.timeline.done >= x.rounds/3
	}
}

// kills reports whether the demo kills a worker. Without a lock there is nothing to take
// over.
func (x *scheduler) kills() bool { return !x.withoutLock }

// isDone reports whether all rounds are done, and a worker has taken over.
func (x *scheduler) isDone() bool {
	if x.begun.IsZero() || x.hasRounds() || x.timeline.done < x.ordered {
		return false
	}
	return !x.kills() || x.timeline.takeover != nil
}
